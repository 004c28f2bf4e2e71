"""Run the commands of a language model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

_REST_SECONDS = 5.0


class Finished(NamedTuple):
    """How a command ended.

    Attributes:
        code: The exit code; negative if a signal ended the command, None if it exceeded the time limit.
        output: Standard output and error, in order.
    """

    code: int | None
    output: str

    @property
    def shown(self) -> str:
        """The output to show to a language model; unless the command succeeded, this includes how it ended."""
        how = "It took too long and was killed." if self.code is None else f"Exit code {self.code}."
        return self.output if self.code == 0 else f"{self.output}\n{how}".lstrip("\n")


def run(command: str, *, cwd: Path | None = None, timeout: float | None = None, limit: int = 20_000) -> Finished:
    """Run a command in `sh`.

    Args:
        command: The command.
        cwd: The working directory; None: the current folder.
        timeout: Seconds after which the command and all processes that it started are killed.
        limit: Maximum number of characters of output to keep, half of them from its beginning.
    """
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    code: int | None = None
    try:
        written, _ = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        kill(process.pid)
        written, _ = written_by(process)
    except BaseException:
        kill(process.pid)
        raise
    output = written.decode("utf-8", "replace")
    if len(output) > limit:
        half = limit // 2
        output = f"{output[:half]}\n… [{len(output) - 2 * half} characters left out] …\n{output[-half:]}"
    return Finished(code, output)


def written_by(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the output of a killed program without waiting for further output of its descendants."""
    try:
        return process.communicate(timeout=_REST_SECONDS)
    except subprocess.TimeoutExpired as error:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return error.stdout or b"", error.stderr or b""


def kill(group: int) -> None:
    """Kill a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
