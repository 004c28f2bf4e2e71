"""What the rules read of a run: its row, log, steps and code. All of it may be hostile; reading is bounded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.files import open_below

from mleredux_experiments.results import Row
from mleredux_experiments.rollouts import is_number

_LOG_BYTES = 4 << 20
_CODE_BYTES = 1 << 20
_STEP_CHARS = 200_000
_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Warning|Exit))\b:?.*$", re.MULTILINE)
_PARTICULARS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|/[\w./-]+")


@dataclass(frozen=True)
class Step:
    """One step of the rollout in which the agent acted."""

    number: int
    action: str
    output: str
    buggy: bool | None
    validation: float | None
    lower_is_better: bool | None

    @property
    def error(self) -> str | None:
        """The line of the exception that ended it."""
        found = list(_ERROR.finditer(self.output)) if "Traceback" in self.output or self.buggy else []
        return found[-1].group().strip() if found else None

    @property
    def same_error(self) -> str | None:
        """The error without numbers, paths and quoted names, so that equal ones are equal."""
        return None if self.error is None else _PARTICULARS.sub("_", self.error)

    @property
    def code(self) -> str | None:
        """Hash of the action, without blanks; None where it is too short to mean anything."""
        text = re.sub(r"\s+", "", self.action)
        return hashlib.sha256(text.encode(errors="replace")).hexdigest() if len(text) >= 40 else None


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
                before, left = 0, file.seek(0, 2) - _LOG_BYTES
                file.seek(0)
                while left > 0 and (piece := file.read(min(left, _LOG_BYTES))):
                    before, left = before + piece.count(b"\n"), left - len(piece)
                return before, [line.decode(errors="replace") for line in file.read(_LOG_BYTES).split(b"\n")]
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
    def text(self) -> str:
        """All that the agent's steps and its log printed."""
        return "\n".join((*(step.output for step in self.steps), *self.log))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Lines of the steps' outputs and of the log, each with where it is."""
        for step in self.steps:
            for line in step.output.splitlines():
                yield line, f"step {step.number}"
        for place, line in enumerate(self.log):
            yield line, self.log_line(place)


def _step(number: int, step: dict[str, Any]) -> Step:
    extra = step.get("extra") or {}
    calls = step.get("tool_calls") or []
    results = (step.get("observation") or {}).get("results") or []
    value = extra.get("validation_metric")
    return Step(
        number=number,
        action="\n".join(_text(call.get("arguments")) for call in calls)[:_STEP_CHARS],
        output="\n".join(_text(result.get("content")) for result in results)[:_STEP_CHARS],
        buggy=extra.get("is_buggy"),
        validation=float(value) if is_number(value) else None,
        lower_is_better=extra.get("lower_is_better"),
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_text(part) for part in value.values())
    if isinstance(value, list):
        return "\n".join(_text(part.get("text") if isinstance(part, dict) else part) for part in value)
    return "" if value is None else str(value)
