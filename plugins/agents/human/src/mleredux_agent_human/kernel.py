"""Inside a notebook's kernel: reports of cells and their output to the session; `%submit`, `%clock`, `%finish`."""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from mleredux_agentkit import Task
from mleredux_agentkit.wire import NoSession, request

_MAX_OUTPUT = 1 << 18


class _Tee:
    """A stream that also records its text, up to a limit."""

    def __init__(self, stream: Any, kept: list[str]) -> None:
        self._stream, self._kept, self._left = stream, kept, _MAX_OUTPUT

    def write(self, text: str) -> int:
        """Write text and record it."""
        self._kept.append(text[: self._left])
        self._left -= len(self._kept[-1])
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Recorder:
    """Reports executed cells of a kernel to the session."""

    def __init__(self, shell: Any) -> None:
        self._shell, self._output_dir = shell, Task().output_dir
        self._kept: list[str] = []
        self._streams = sys.stdout, sys.stderr

    def begin(self, _info: Any) -> None:
        """Start recording, before a cell."""
        self._kept, self._streams = [], (sys.stdout, sys.stderr)
        sys.stdout, sys.stderr = _Tee(sys.stdout, self._kept), _Tee(sys.stderr, self._kept)

    def end(self, result: Any) -> None:
        """Report the cell and its output, after a cell."""
        sys.stdout, sys.stderr = self._streams
        if not result.info.store_history or not result.info.raw_cell.strip():
            return
        output = "".join(self._kept)
        if result.result is not None:
            with contextlib.suppress(Exception):  # the object's own representation
                shown, _ = self._shell.display_formatter.format(result.result, include=["text/plain"])
                output += shown["text/plain"]
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            frames = error.__traceback__ and error.__traceback__.tb_next  # the first frame is IPython's
            output += "".join(traceback.format_exception(type(error), error, frames))
        cell = {"command": result.info.raw_cell, "output": output[:_MAX_OUTPUT], "code": int(error is not None)}
        with contextlib.suppress(NoSession):
            if notice := request(self._output_dir, "cell", json.dumps(cell).encode()).get("message"):
                print(notice)


def record(shell: Any) -> None:
    """Record the cells of a kernel, and add the workspace's commands to it."""
    recorder = _Recorder(shell)
    shell.events.register("pre_run_cell", recorder.begin)
    shell.events.register("post_run_cell", recorder.end)
    for name in ("submit", "clock", "finish"):
        shell.register_magic_function(partial(_print, name), magic_name=name)


def _print(name: str, line: str) -> None:
    file = Path(line.strip().strip("\"'")) if name == "submit" and line.strip() else None
    try:
        print(request(Task().output_dir, name, file).get("message", ""))
    except NoSession:
        print("The session has ended.")
    except OSError as error:
        print(f"{file} can't be read: {error.strerror}.")
