"""One family of errors: each states what is wrong, where, and what to do next."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Patterns are text, because each would otherwise be compiled whenever a command starts.
_FOLDERS = r"MLEREDUX_\w+_(?:CACHE|DIR|ROOT)|XDG_\w+_HOME|APPTAINER_CACHEDIR|TMPDIR"
"""Variables that name a folder in which files are created."""


class MlereduxError(Exception):
    """Base of every error that mleredux raises on purpose.

    Args:
        message: One sentence about what is wrong and where.
        hint: One sentence about what to do next.

    Attributes:
        exit_code: The exit code of the command line.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class WrongUsage(MlereduxError):
    """A user's expression or condition can't be evaluated as written."""

    exit_code = 2


class NotFound(MlereduxError):
    """No task, agent, grader, sandbox or run has this name."""


class PluginError(MlereduxError):
    """A plugin can't be loaded, or its declarations are invalid. The message names the plugin and the remedy."""


class DataError(MlereduxError):
    """Raw or prepared data is missing, damaged, or belongs to another version of the task."""


class NotApplicable(MlereduxError):
    """A technique does not apply to a task; the message states why."""


class TaskBroken(MlereduxError):
    """The task itself is faulty: its declaration, its answers or its grader."""


class InvalidSubmission(MlereduxError):
    """A submission can't be scored. The message is for the agent: one sentence about what to fix."""


class SandboxError(MlereduxError):
    """The environment failed: no container engine, a failed build, a container that did not start."""


class ExecutorError(MlereduxError):
    """An executor refused a run, or its engine does not respond."""


class StoreError(ExecutorError):
    """An object store refused a request, does not respond, or returned a damaged object."""


class AgentBroken(MlereduxError):
    """The agent itself is faulty: it does not meet a requirement for all agents."""


class BuildFailed(SandboxError):
    """An agent's environment could not be built; the run contains the build log.

    Attributes:
        by_agent: Whether the agent's own recipe failed, so building it again would not help.
    """

    def __init__(self, message: str, *, hint: str | None = None, by_agent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.by_agent = by_agent


class NotGranted(MlereduxError):
    """An agent requests access that the person who runs it did not grant, or that can't be granted."""


class ResumeRefused(MlereduxError):
    """A run can't be resumed: it is still running, has finished, or was started with other versions."""


class Cancelled(MlereduxError):
    """The user stopped the run."""

    exit_code = 130

    def __init__(self, message: str = "The run was cancelled.") -> None:
        super().__init__(message)


def one_line(error: BaseException) -> str:
    """Return the type and message of a foreign exception, for use in a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


@contextlib.contextmanager
def foreign_code(
    kind: type[MlereduxError], message: str, hint: str, passed: type[Exception] | tuple[()] = MlereduxError
) -> Iterator[None]:
    """Raise an error of this kind, with the exception added to its message, if code of a plugin raises any exception,
    even SystemExit, except those that are passed and the user's Ctrl-C."""
    try:
        yield
    except passed:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise kind(f"{message} ({one_line(error)}).", hint=hint) from error


WRONG_SHAPE = (AttributeError, LookupError, TypeError)
"""Errors of code that reads a JSON document with other fields or types than expected."""
_FAULTS = (
    (json.JSONDecodeError, "it is not JSON"),
    (RecursionError, "it is nested too deeply"),
    (UnicodeDecodeError, "it is not UTF-8 text"),
    (WRONG_SHAPE, "a field is missing, or has a wrong type"),
)


def file_fault(error: BaseException) -> str:
    """Return why a file or response can't be used, in words that end a sentence, without the period."""
    plain = getattr(error, "strerror", None) or " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return next((words for kinds, words in _FAULTS if isinstance(error, kinds)), plain)


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception results from a signal, such as the user's Ctrl-C, not from the code of a plugin.

    A handler of signals raises it, which gets the interrupted frame as an argument. Without one, the interpreter raises
    KeyboardInterrupt between any two instructions, or the standard library's `asyncio` does.
    """
    trace = error.__traceback__
    if trace is None or not isinstance(error, KeyboardInterrupt | SystemExit):
        return False
    from opcode import opname

    while trace.tb_next is not None:
        trace = trace.tb_next
    frame, instruction = trace.tb_frame, opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    raised = isinstance(error, SystemExit) or (
        instruction == "RAISE_VARARGS" and package not in sys.stdlib_module_names
    )
    return not raised or any(type(value) is type(frame) for value in frame.f_locals.values())


@contextlib.contextmanager
def file_errors(
    kind: Callable[..., Exception], message: str, hint: str | None = None, *others: type[Exception]
) -> Iterator[None]:
    """Raise an error of this kind, with the reason added, if a file or program can't be used, is not UTF-8 text, or
    causes one of the other errors."""
    caught: tuple[type[Exception], ...] = (OSError, UnicodeError, RecursionError, *others)
    try:
        yield
    except caught as error:
        raise kind(f"{message}: {file_fault(error)}.", hint=hint) from error


def disk_full(error: BaseException | None) -> str | None:
    """Return a sentence if an exception or its cause indicates a full disk; the same sentence is used everywhere."""
    text = os.strerror(errno.ENOSPC)
    while error is not None:
        by_number = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        message = str(error).lower()
        if by_number or any(words in message for words in (text.lower(), "disk is full", "disk quota exceeded")):
            where = f" of {name}" if (name := getattr(error, "filename", None)) else ""
            return f"The disk{where} is full ({text}). Free some space, or choose a folder on another disk."
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


_NO_NAME = (
    r"no such host|name resolution|name or service not known|could ?n.t resolve host|could not resolve host"
    r"|server misbehaving|nodename nor servname|dns error"
)


def machine_fault(error: BaseException) -> str | None:
    """Return a sentence if an error indicates a full disk, an unwritable folder, or an unresolvable host name; every
    sandbox reports a fault of the machine with the same sentence."""
    unresolved = "Host names can't be resolved. Check this machine's network, its DNS servers and its proxy settings."
    return (
        disk_full(error)
        or unusable_folder(error)
        or (unresolved if re.search(_NO_NAME, str(error), re.IGNORECASE) else None)
    )


_PASSES = (
    r"can(?:'t|not) be (?:reached|resolved)|(?:does not|doesn't|not) respond|name resolution|no space left on device"
    r"|connection (?:refused|reset|aborted|timed out)|timed out|timeout|unreachable|no route to host"
    r"|service unavailable|bad gateway|too many requests|database is locked|failed to connect|connection error"
)


def may_pass(message: str) -> bool:
    """Return whether a message describes a temporary condition, such as an engine, a network or a store
    that does not respond, or a full disk."""
    return re.search(_PASSES, message, re.IGNORECASE) is not None


def unusable_folder(error: BaseException | None) -> str | None:
    """Return a sentence if an exception shows that the folder in a variable, such as HOME, can't be written."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str):
        return None
    from pathlib import Path

    folders = [(name, Path(value)) for name, value in os.environ.items() if value and re.fullmatch(_FOLDERS, name)]
    folders += [("HOME", Path.home() / name) for name in (".cache", ".config", ".local")]
    place = Path(error.filename).absolute()
    for name, folder in folders:
        inside, above = place.is_relative_to(folder.absolute()), folder.absolute().is_relative_to(place)
        if (inside or above) and not _can_write(folder):
            shown = folder.parent if name == "HOME" else folder
            return (
                f"The folder {shown} can't be written ({error.strerror}). Set {name} to a folder that can be written."
            )
    return None


@contextlib.contextmanager
def plain_faults() -> Iterator[None]:
    """Replace an error due to a full disk or an unusable folder by one whose message states this.

    Raises:
        MlereduxError: The disk is full, or a folder can't be written.
    """
    try:
        yield
    except Exception as error:
        if sentence := disk_full(error) or unusable_folder(error):
            raise MlereduxError(sentence) from error
        raise


def _can_write(folder: Path) -> bool:
    """Return whether a folder and files in it can be created; in /proc, not even root can do so, whatever the mode."""
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder):
            return True
    except OSError:
        return False
