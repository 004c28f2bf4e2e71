"""Determine why a stage failed: the cause of an exception, and the line of an agent's log that shows why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mleredux import errors
from mleredux._core.masks import Mask
from mleredux._core.submissions.files import open_regular
from mleredux.models import Cause

_OF_TASKS = (errors.TaskBroken, errors.DataError, errors.NotApplicable, errors.NotFound, errors.PluginError)


@dataclass
class Failure:
    """The failure that ended a run.

    Attributes:
        message: One sentence for the user.
    """

    cause: Cause
    message: str


def failure_of(error: Exception) -> Failure:
    """Return the cause and the message for an exception that ended a stage."""
    if isinstance(error, errors.Cancelled):
        return Failure(Cause.CANCELLED, str(error))
    by_agent = isinstance(error, errors.BuildFailed) and error.by_agent  # this may be its own disk limit
    if not by_agent and (full := errors.disk_full(error)):
        return Failure(Cause.ENVIRONMENT_BROKE, full)
    if isinstance(error, errors.AgentBroken) or by_agent:
        return Failure(Cause.AGENT_CRASHED, str(error))
    text = str(error) if isinstance(error, errors.MlereduxError) else errors.one_line(error)
    message = errors.machine_fault(error) or text
    passing = isinstance(error, errors.DataError) and errors.may_pass(message)  # a download that can succeed later
    if isinstance(error, _OF_TASKS) and not passing:
        return Failure(Cause.TASK_BROKEN, str(error))
    return Failure(Cause.ENVIRONMENT_BROKE, message)


_LAST_BYTES = 64 << 10
_LONGEST = 300
_TRACEBACK = "Traceback (most recent call last):"
_MISSING = re.compile(r"FileNotFoundError|No such file or directory")
_FRAME = re.compile(r'(?m)^ *File "(?!<|[^"]*(?:-packages|/lib/python3))([^"]+)", line (\d+).*(?:\n {4,}(.*))?')
_ERROR = re.compile(r"MemoryError|Cannot allocate memory|Killed|command not found|: not found|[Ee]rror\b")
_UNDECLARED = re.compile(r"No module named")
_PACKAGES = (
    'Declare the packages that the agent needs: with `# dependencies = ["NAME"]` at the top of a script (PEP 723), in '
    "requirements.txt next to it, or in the manifest of its folder; an isolated sandbox has no others."
)
_WHERE = (
    "The data is in the folder $MLEREDUX_DATA_DIR, and files from a script's own folder are in $MLEREDUX_AGENT_DIR; "
    "the working directory is the output folder."
)


def failure_line(log: Path, mask: Mask) -> str | None:
    """Return the last line of the last traceback, else the last line that mentions an error, else the last line.

    Returns:
        The line, printable and without secrets, with the line of the agent's own code that failed, if a traceback shows
        it, and with a hint if a file or package was missing; None if the log is empty.
    """
    try:
        with open_regular(log) as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            text = mask.hide(file.read()).decode(errors="replace")
    except OSError:
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith(_TRACEBACK)]
    last = next((line for line in lines[starts[-1] + 1 :] if not line[:1].isspace()), None) if starts else None
    last = last or next((line for line in reversed(lines) if _ERROR.search(line)), lines[-1] if lines else None)
    if last is None:
        return None
    shown = _printable(last) + _where("\n".join(lines[starts[-1] if starts else 0 :]))
    if _UNDECLARED.search(shown):
        return f"{shown}. {_PACKAGES}"
    return f"{shown}. {_WHERE}" if _MISSING.search(shown) else f"{shown}."


def _where(traceback: str) -> str:
    """Return the place of the last line of the agent's own code in a traceback, in parentheses, if there is one."""
    own = _FRAME.findall(traceback)[-1:]
    named = [f"{Path(path).name}, line {number}" + (f": {code}" if code else "") for path, number, code in own]
    return "".join(f" ({_printable(place)})" for place in named)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text.strip())[:_LONGEST].rstrip(".")
