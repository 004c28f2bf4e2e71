"""The parts of a run that the rules read: its row, log, steps and code. All may be hostile; reading is bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from signal import Signals
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.files import IntakeLimits, open_below
from mleredux_rollout import read_files

from mleredux_experiments.failures.errors import FRAME, PATTERNS, WORDS, is_error, is_prose, measurements
from mleredux_experiments.results.rollouts import is_number
from mleredux_experiments.results.table import Row

_LOG_BYTES = 4 << 20
_ANY_HOLES = 1 << 28
"""From this size on, a log ends where its first hole begins: reading holes only takes time."""
_CODE_BYTES = 1 << 20
_CODE = IntakeLimits(files=1_000, file_bytes=_CODE_BYTES, total_bytes=50 * _CODE_BYTES)
_STEP_CHARS = 200_000
_LINE_CHARS = 1_000
_NOT_PRINTED = ("command", "code", "arguments", "input", "thought")
"""Keys in JSON log lines whose values were not printed by a program."""
_GAP, _FOLLOWED, _QUOTED = 4, 60, 20
"""Maximum number of lines within an error's message; number of lines after it that show that work continued; number of
characters in a quotation."""


@dataclass
class Step:
    """A step of the rollout in which the agent acted; its texts are taken from the document when a rule needs them."""

    number: int
    document: Mapping[str, Any]
    validation: float | None
    lower_is_better: bool | None

    @cached_property
    def action(self) -> str:
        """Return the action: the arguments of the tool calls."""
        return _texts(self.document.get("tool_calls"), "arguments")

    @cached_property
    def output(self) -> str:
        """Return the output of the action."""
        observation = self.document.get("observation")
        return _texts(observation.get("results"), "content") if isinstance(observation, dict) else ""

    @property
    def code(self) -> str | None:
        """Return the action without whitespace; None if it is too short to be meaningful."""
        text = "".join(self.action.split())
        return text if len(text) >= 40 else None


@dataclass(frozen=True)
class Evidence:
    """The evidence on a run; files are read when a rule needs them.

    Attributes:
        folder: The run's directory.
        message: Why the run failed, or why its submission has no score.
        limit: The limit that ended the agent.
        exit_code: Exit code of the agent's command; None if it did not exit on its own.
        signal: The signal that ended it.
        llm: Use of language models, as in the report's ledger.
        trace: The content of its rollout; None if there is no readable one.
    """

    row: Row
    folder: Path
    message: str = ""
    limit: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    llm: Mapping[str, Any] = field(default_factory=dict)
    trace: Any = None

    @property
    def killed_by(self) -> Signals | None:
        """Return the signal that ended the agent, even if a shell reports it."""
        number = self.signal or (self.exit_code or 0) - 128
        return Signals(number) if number in set(Signals) else None

    @property
    def crashed(self) -> bool:
        """Return whether the agent ended with an error."""
        return self.row.cause == "agent_crashed" or bool(self.exit_code) or self.killed_by is not None

    @property
    def searches(self) -> bool:
        """Return whether the agent could have continued: it called language models, or recorded its steps."""
        with suppress(MlereduxError):  # references, which may have to be fetched, are never resolved for this
            if ":" not in self.row.agent and "no-llm" in current().agent(self.row.agent).tags:
                return False
        try:
            reconstructed = self.trace["extra"]["mleredux"]["made_from"] == "events"
        except (KeyError, TypeError):
            reconstructed = False
        return bool(self.llm.get("calls")) or (bool(self.steps) and not reconstructed)

    def is_error(self, at: int) -> bool:
        """Return whether a line shows an error that is not only the consequence of another error."""
        line = self.lines[at][0].lstrip(FRAME)
        shown = at in self.raised or ((is_error(line) or PATTERNS["http"].search(line)) and not is_prose(line))
        return bool(shown) and not PATTERNS["consequence"].search(line)

    @cached_property
    def errors(self) -> list[int]:
        """Return the indices of the last lines of errors: one for each traceback, including its chained exceptions."""
        errors: list[int] = []
        for at, (_, small, where) in enumerate(self.lines):
            if (at in self.raised or any(map(small.__contains__, WORDS))) and self.is_error(at):
                if errors and self._is_of(at, errors[-1]) and self.lines[errors[-1]][2].startswith(("logs", where)):
                    errors.pop()
                errors.append(at)
        return errors

    def _is_of(self, at: int, other: int) -> bool:
        """Return whether an earlier error is part of the message of an error, rather than the same error repeated."""
        return self._start(at) <= other and (at in self.raised or self.shape(at) != self.shape(other))

    def error(self, at: int) -> str:
        """Return an error message, from the index of its last line."""
        return self.raised[at][1] if at in self.raised else self.lines[at][0].lstrip(FRAME)

    def shape(self, at: int) -> str:
        """Return the message of an error without numbers, paths and quoted names."""
        return PATTERNS["particulars"].sub("_", self.error(at))

    @cached_property
    def leaks(self) -> tuple[str, ...]:
        """Return the columns that the task declares as leaks; empty if the task is not installed."""
        try:
            declared = current().task(self.row.task).known_leaks
        except MlereduxError:
            return ()
        return tuple(name for leak in declared for name in leak.columns)

    @cached_property
    def _log(self) -> tuple[int, list[str]]:
        """Return the number of lines before the end part of the agent's log, and the lines of this part."""
        try:
            with open_below(self.folder, "logs/agent.log") as file:
                size = file.seek(0, os.SEEK_END)
                if size > _ANY_HOLES:
                    size = file.seek(0, os.SEEK_HOLE)
                file.seek(0)
                before, remaining = 0, size - _LOG_BYTES
                while remaining > 0 and (piece := file.read(min(remaining, _LOG_BYTES))):
                    before, remaining = before + piece.count(b"\n"), remaining - len(piece)
                return before, [line.decode(errors="replace") for line in file.read(min(size, _LOG_BYTES)).split(b"\n")]
        except OSError:
            return 0, []

    @property
    def log(self) -> list[str]:
        """Return the lines of the agent's log, or of its end part."""
        return self._log[1]

    @cached_property
    def steps(self) -> list[Step]:
        """Return the steps of the rollout in which the agent acted."""
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            steps = enumerate(self.trace["steps"], start=1)
            return [_step(number, step) for number, step in steps if step.get("source") == "agent"]
        return []

    @cached_property
    def code(self) -> str:
        """Return the Python code among the output files."""
        code = self.folder / "output" / "code"
        files = read_files(code, _CODE, (".py",)) if not code.is_symlink() else ()
        return "\n".join(data.decode(errors="replace") for _, data in files)

    @cached_property
    def measured(self) -> float | None:
        """Return the last value of the task's metric that the agent's programs printed; None if it may be on another
        scale."""
        texts, row = "\n".join(line for line, *_ in self.lines), self.row
        if row.metric is None or (row.lower_is_better and PATTERNS["rescaled"].search(texts + self.code)):
            return None
        last = next(reversed(measurements(row.metric, texts)), None)
        percent = last is not None and last > 1 >= (row.score or 0) and not row.lower_is_better
        return last / 100 if last is not None and percent else last

    @cached_property
    def distinct(self) -> int | None:
        """Return the number of distinct values in the last column of the last submission; None if they cannot be
        counted."""
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
    def lines(self) -> list[tuple[str, str, str]]:
        """Return lines of the steps' outputs and of the log: the line, the line in lower case, and its location.

        Long lines are reduced to both ends, to limit the time of pattern matching.
        """
        parts = [(line, f"step {step.number}") for step in self.steps for line in step.output.splitlines()]
        logged = enumerate(self.log, start=self._log[0] + 1)
        parts += [(part, f"logs/agent.log:{number}") for number, line in logged for part in _parts(line)]
        parts = [(part, where) for line, where in parts for part in line.rstrip("\r").split("\r")]
        labels = PATTERNS["label"]
        ends = ((_ends(labels.sub("", line)), where) for line, where in parts if not self._is_quoted(line))
        return [(line, line.lower(), where) for line, where in ends]

    @cached_property
    def _instructions(self) -> str:
        """Return the instructions and the task's description, without whitespace."""
        texts = []
        for name in ("instructions.md", "description.md"):
            with suppress(OSError), open_below(self.folder, f"task/{name}") as file:
                texts.append(file.read(_CODE_BYTES).decode(errors="replace"))
        return "".join("".join(texts).split())

    def _is_quoted(self, line: str) -> bool:
        """Return whether a line is quoted from the instructions or the task's description."""
        words = "".join(line.strip(f"{FRAME}-#*").split())
        return len(words) >= _QUOTED and words in self._instructions

    @cached_property
    def raised(self) -> dict[int, tuple[int, str]]:
        """Return exceptions by the indices of their lines: the index where the traceback (with earlier chained ones)
        begins, and the line."""
        lines, errors = [line for line, *_ in self.lines], {}
        start = chained = -1
        for at, line in enumerate(lines):
            if line.lstrip(FRAME).startswith("Traceback"):
                indent = len(line) - len(line.lstrip(FRAME))
                start = chained if chained >= 0 else at
                chained = -1
            elif start >= 0 and (text := line[indent:]).strip() and not line[:indent].strip(FRAME):
                if not text.startswith((" ", "\t")):
                    errors[at] = (start, text.strip())
                    chained, start = start, -1
            elif at and PATTERNS["trailed"].match(line):
                last = at - 1
                while last > max(at - _GAP, 0) and (is_prose(lines[last]) or not is_error(lines[last])):
                    last -= 1
                errors[last] = (last, lines[last].strip(FRAME))
            elif chained >= 0 and line.strip() and not PATTERNS["chained"].match(line.lstrip(FRAME)):
                chained = -1
        return errors

    def ending(self, is_sign: Callable[[str, str], bool]) -> range:
        """Return the indices in `lines` of the last error, with its traceback or message; empty if work continued after
        it."""
        lines, consequence, followed = self.lines, len(self.lines), 0
        for at in range(len(lines) - 1, -1, -1):
            line, small, _ = lines[at]
            if at in self.raised or ((is_error(line.lstrip(FRAME)) or is_sign(line, small)) and not is_prose(line)):
                if not PATTERNS["consequence"].search(line):
                    return range(self._start(at), len(lines))
                consequence = at
            followed += bool(line.strip())
            if followed > _FOLLOWED or ((self.killed_by or not self.row.cause) and PATTERNS["resumed"].search(line)):
                break
        return range(consequence, len(lines))

    def _start(self, at: int) -> int:
        """Return the index of the first line of an error message, from the index of its last line."""
        raised = [place for place in range(max(at - _GAP, 0), at + 1) if place in self.raised]
        return self.raised[raised[-1]][0] if raised else max(at - _GAP, 0)


def _parts(line: str) -> list[str]:
    """Split a log line: return the lines of the texts in a JSON object (other than an error), else the line itself."""
    try:
        entry = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        entry = None
    if entry is None or (("error" in entry or entry.get("level") in ("error", "fatal")) and "Traceback" not in line):
        return [line]
    return "\n".join(_texts_in(entry)).splitlines()


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for name, part in value.items() if name not in _NOT_PRINTED for text in _texts_in(part))
    elif isinstance(value, list):
        yield from (text for part in value for text in _texts_in(part))


def _ends(line: str) -> str:
    return line if len(line) <= 2 * _LINE_CHARS else f"{line[:_LINE_CHARS]} … {line[-_LINE_CHARS:]}"


def _step(number: int, step: Mapping[str, Any]) -> Step:
    extra = step.get("extra") or {}
    value = extra.get("validation_metric")
    measured = float(value) if is_number(value) else None
    return Step(number, step, measured, extra.get("lower_is_better"))


def _texts(parts: Any, key: str) -> str:
    texts = [_text(part.get(key)) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(texts)[:_STEP_CHARS]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_text(part) for part in value.values())
    if isinstance(value, list):
        return "\n".join(_text(part.get("text") if isinstance(part, dict) else part) for part in value)
    return "" if value is None else str(value)
