"""What the rules read of a run: its row, log, steps and code. All of it may be hostile; reading is bounded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mleredux.plugin.artifact import Run
from mleredux.plugin.files import open_below
from mleredux.plugin.rollout import MAX_BYTES
from pydantic_core import from_json

from mleredux_experiments.results import Row

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
    """What is known of a run.

    Attributes:
        message: Why it failed, or why its submission has no score.
        limit: The limit that ended the agent.
        exit_code: Of the agent's command; None where it did not end by itself.
        llm: Use of language models, as in the report's ledger.
        log: The agent's log, or its end.
        code: The agent's final code.
        leaks: Columns that the task declares as leaks.
        distinct: How many different predictions the last submission has; None where they can't be counted.
    """

    row: Row
    message: str = ""
    limit: str | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    llm: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    code: str = ""
    leaks: tuple[str, ...] = ()
    distinct: int | None = None

    def lines(self) -> Iterator[tuple[str, str]]:
        """Lines of the steps' outputs and of the log, each with where it is."""
        for step in self.steps:
            for line in step.output.splitlines():
                yield line, f"step {step.number}"
        for number, line in enumerate(self.log, start=1):
            yield line, f"logs/agent.log:{number}"


def evidence_of(run: Run, row: Row, leaks: tuple[str, ...] = ()) -> Evidence:
    """Read a run's files."""
    outcome, report = run.outcome, run.report
    ledger = report.ledger if report else None
    llm = ledger.llm if ledger and ledger.llm else run.log.state.llm
    return Evidence(
        row=row,
        message=run.message or (report.message if report else None) or "",
        limit=outcome.limit if outcome else None,
        exit_code=outcome.exit_code if outcome else None,
        seconds=outcome.seconds if outcome else 0.0,
        llm=llm.model_dump(mode="json") if llm else {},
        log=_log(run),
        steps=_steps(run.path / "rollout.json"),
        code=_code(run),
        leaks=leaks,
        distinct=_distinct(run),
    )


def _log(run: Run) -> list[str]:
    try:
        with open_below(run.path, "logs/agent.log") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            return file.read(_LOG_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


def _steps(path: Path) -> list[Step]:
    try:
        if path.stat().st_size > MAX_BYTES:
            return []
        steps = from_json(path.read_bytes())["steps"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [_step(number, step) for number, step in enumerate(steps, start=1) if step.get("source") == "agent"]


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
        validation=float(value) if isinstance(value, int | float) else None,
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


def _code(run: Run) -> str:
    """The Python code among the output files."""
    found = []
    folder = run.output_dir / "code"
    for path in sorted(folder.rglob("*.py"))[:50] if folder.is_dir() and not folder.is_symlink() else []:
        try:
            with open_below(run.output_dir, path.relative_to(run.output_dir).as_posix()) as file:
                found.append(file.read(_CODE_BYTES).decode(errors="replace"))
        except (OSError, ValueError):
            continue
    return "\n".join(found)


def _distinct(run: Run) -> int | None:
    """Different values in the last column of the last submission."""
    versions = run.submissions()
    if not versions or versions[-1].path.suffix != ".csv":
        return None
    try:
        with open_below(run.path, str(versions[-1].path.relative_to(run.path))) as file:
            lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()[1:]
    except OSError:
        return None
    return len({line.rpartition(",")[2] for line in lines}) if lines else None
