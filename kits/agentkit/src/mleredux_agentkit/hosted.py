"""A session in the program of its client: its commands are forks of a process that has imported libraries."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mleredux_agentkit.session import Session, agent_name
from mleredux_agentkit.shell import Finished, ends
from mleredux_agentkit.task import Task
from mleredux_agentkit.workspace import MAX_OUTPUT, Completed

_LIBRARIES = ("numpy", "pandas", "sklearn")
"""Code with one of these names runs in a fork of a larger process, which has imported these libraries."""
_MOST_CHARACTERS = 20_000
Call = Callable[[Mapping[str, Any], Sequence[int], str, Mapping[str, str], float | None], int | None]


class HostedSession(Session):
    """A session whose commands are executed by a function.

    Args:
        task: The task.
        call: `call(request, files, folder, env, seconds)` calls `work(request, files)` in a process, and returns its
            exit code, or None if it took longer.
        stirred: Set when the session has ended, so that the program that supervises it notices.
    """

    def __init__(self, task: Task, call: Call, stirred: threading.Event) -> None:
        super().__init__(task, agent_name(task))
        self._call, self._stirred = call, stirred

    def finish(self) -> None:
        """End the session."""
        super().finish()
        self._stirred.set()

    def _run(self, request: Mapping[str, Any], files: Sequence[BinaryIO], *others: Any) -> int | None:
        code = self._call(request, [file.fileno() for file in files], *others)
        if self.finished.is_set():
            raise ConnectionAbortedError  # the session was ended, and the command with it
        return code

    def run_text(self, text: str, cell: Path | None, timeout: float) -> Finished:
        """Run a command in `sh`, or the file of a Python cell."""
        used = any(name in text for name in _LIBRARIES)
        request = {"program": ["sh", "-c", text]} if cell is None else {"file": str(cell), "libraries": used}
        with self._file() as stdin, self._file() as output:
            code = self._run(request, (stdin, output, output), str(self.task.output_dir), {}, timeout)
            return Finished(code, ends(output, _MOST_CHARACTERS))

    def run_program(
        self, arguments: Sequence[str], folder: Path, env: Mapping[str, str], content: bytes, timeout: float | None
    ) -> Completed:
        """Run a program; arguments are those of `workspace.execute`."""
        with self._file() as stdin, self._file() as output, self._file() as errors:
            stdin.write(content)
            stdin.seek(0)
            request = {"program": list(arguments)}
            code = self._run(request, (stdin, output, errors), str(folder), env, timeout)
            return Completed(code, _last(output), _last(errors))

    def _file(self) -> BinaryIO:
        return tempfile.TemporaryFile(dir=self.task.scratch_dir, buffering=0)


def work(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Execute a Python file as a new interpreter would, with these files as standard input and output."""
    for source, target in zip(files, (0, 1), strict=True):
        os.dup2(source, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()  # otherwise, all forks would draw the same numbers
    module = types.ModuleType("__main__")
    module.__file__ = file = request["file"]
    sys.argv[:] = [file]
    sys.path.insert(0, os.path.dirname(file))  # noqa: PTH120
    sys.modules["__main__"] = module
    try:
        exec(compile(Path(file).read_bytes(), file, "exec"), vars(module))
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            sys.stderr.write(f"{error.code}\n")
            raise SystemExit(1) from None
        raise
    except BaseException as error:
        below = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(below), below)
        raise SystemExit(1) from None
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as an interpreter does
        atexit._run_exitfuncs()


def _last(file: BinaryIO) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_OUTPUT))
    return file.read(MAX_OUTPUT)
