"""What the rules read of a run: its row, log, steps and code. All of it may be hostile; reading is bounded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.files import open_below

from mleredux_experiments.results.rollouts import is_number
from mleredux_experiments.results.table import Row

_LOG_BYTES = 4 << 20
_CODE_BYTES = 1 << 20
_STEP_CHARS = 200_000
_LINE_CHARS = 1_000
_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Warning|Exit))\b:?.*$", re.MULTILINE)
_COMMAND = re.compile(
    r"^.*(?:command not found|\btimed out\b.*)$|^(?:[\w./-]+: )*(?:ERROR|error|fatal): (?=[A-Za-z'\"]).*$", re.MULTILINE
)
"""What shells and commands print that failed; each has one of `_FAILED`."""
_FAILED = ("command not found", "timed out", "ERROR: ", "error: ", "fatal: ")
_RAISED = ("Traceback", "SyntaxError: ", "IndentationError: ")
"""What Python prints of an exception; errors of syntax come without a traceback."""
_PARTICULARS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|/[\w./-]+")


@dataclass
class Step:
    """One step of the rollout in which the agent acted; its texts are taken from the document when a rule asks."""

    number: int
    told: Mapping[str, Any]
    buggy: bool | None
    validation: float | None
    lower_is_better: bool | None

    @cached_property
    def action(self) -> str:
        """What it did: the arguments of its tool calls."""
        return _texts(self.told.get("tool_calls"), "arguments")

    @cached_property
    def output(self) -> str:
        """What came of it."""
        observation = self.told.get("observation")
        return _texts(observation.get("results"), "content") if isinstance(observation, dict) else ""

    @cached_property
    def error(self) -> str | None:
        """The line of the exception that ended it, or of the command that failed."""
        found: list[re.Match[str]] = []
        if self.buggy or any(map(self.output.__contains__, _RAISED)):
            found += _ERROR.finditer(self.output)
        if any(map(self.output.__contains__, _FAILED)):
            found += _COMMAND.finditer(self.output)
        return max(found, key=re.Match.start).group().strip() if found else None

    @property
    def same_error(self) -> str | None:
        """The error without numbers, paths and quoted names, so that equal ones are equal."""
        return None if self.error is None else _PARTICULARS.sub("_", self.error)

    @property
    def code(self) -> str | None:
        """The action without blanks; None where it is too short to mean anything."""
        text = "".join(self.action.split())
        return text if len(text) >= 40 else None


@dataclass(frozen=True)
class Evidence:
    """What is known of a run; files are read when a rule asks for them.

    Attributes:
        folder: The run's directory.
        message: Why it failed, or why its submission has no score.
        limit: The limit that ended the agent.
        exit_code: Of the agent's command; None where it did not end by itself.
        llm: Use of language models, as in the report's ledger.
        trace: The content of its rollout; None if there is none that can be read.
    """

    row: Row
    folder: Path
    message: str = ""
    limit: str | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    llm: Mapping[str, Any] = field(default_factory=dict)
    trace: Any = None

    @cached_property
    def leaks(self) -> tuple[str, ...]:
        """Columns that the task declares as leaks; none if it is not installed."""
        try:
            declared = current().task(self.row.task).known_leaks
        except MlereduxError:
            return ()
        return tuple(name for leak in declared for name in leak.columns)

    @cached_property
    def _log(self) -> tuple[int, list[str]]:
        """The number of lines before the end of the agent's log, and the lines of this end."""
        try:
            with open_below(self.folder, "logs/agent.log") as file:
                size = os.fstat(file.fileno()).st_size
                before, left = 0, size - _LOG_BYTES
                while left > 0 and (piece := file.read(min(left, _LOG_BYTES))):
                    before, left = before + piece.count(b"\n"), left - len(piece)
                return before, [line.decode(errors="replace") for line in file.read(min(size, _LOG_BYTES)).split(b"\n")]
        except OSError:
            return 0, []

    @property
    def log(self) -> list[str]:
        """The lines of the agent's log, or of its end."""
        return self._log[1]

    def log_line(self, place: int) -> str:
        """Where a line of `log` is."""
        return f"logs/agent.log:{self._log[0] + place + 1}"

    @cached_property
    def steps(self) -> list[Step]:
        """The steps of the rollout in which the agent acted."""
        try:
            steps = enumerate(self.trace["steps"], start=1)
            return [_step(number, step) for number, step in steps if step.get("source") == "agent"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []

    @cached_property
    def code(self) -> str:
        """The Python code among the output files."""
        found, output = [], self.folder / "output"
        code = output / "code"
        for path in sorted(code.rglob("*.py"))[:50] if code.is_dir() and not code.is_symlink() else []:
            try:
                with open_below(output, path.relative_to(output).as_posix()) as file:
                    found.append(file.read(_CODE_BYTES).decode(errors="replace"))
            except (OSError, ValueError):
                continue
        return "\n".join(found)

    @cached_property
    def distinct(self) -> int | None:
        """How many different values the last column of the last submission has; None where they can't be counted."""
        versions = sorted((self.folder / "submissions").glob("*.csv"))
        if not versions:
            return None
        try:
            with open_below(self.folder, str(versions[-1].relative_to(self.folder))) as file:
                lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()[1:]
        except OSError:
            return None
        return len({line.rpartition(",")[2] for line in lines}) if lines else None

    @cached_property
    def small_text(self) -> str:
        """All that the agent's steps and its log printed, in small letters."""
        return "\n".join((*(step.output for step in self.steps), *self.log)).lower()

    @cached_property
    def lines(self) -> list[tuple[str, str, str]]:
        """Lines of the steps' outputs and of the log: the line, the same in small letters, and where it is.

        Of a long line its two ends, so that no pattern takes long.
        """
        found = [(line, f"step {step.number}") for step in self.steps for line in step.output.splitlines()]
        found += [(line, self.log_line(place)) for place, line in enumerate(self.log)]
        ends = ((_ends(line), where) for line, where in found)
        return [(line, line.lower(), where) for line, where in ends]


def _ends(line: str) -> str:
    return line if len(line) <= 2 * _LINE_CHARS else f"{line[:_LINE_CHARS]} … {line[-_LINE_CHARS:]}"


def _step(number: int, step: Mapping[str, Any]) -> Step:
    extra = step.get("extra") or {}
    value = extra.get("validation_metric")
    measured = float(value) if is_number(value) else None
    return Step(number, step, extra.get("is_buggy"), measured, extra.get("lower_is_better"))


def _texts(parts: Any, key: str) -> str:
    found = [_text(part.get(key)) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(found)[:_STEP_CHARS]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_text(part) for part in value.values())
    if isinstance(value, list):
        return "\n".join(_text(part.get("text") if isinstance(part, dict) else part) for part in value)
    return "" if value is None else str(value)
