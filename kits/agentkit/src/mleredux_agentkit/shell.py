"""Commands of a language model."""

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
        code: Its exit code; negative where a signal ended it; None where it took too long.
        output: What it wrote to standard output and error, in order.
    """

    code: int | None
    output: str

    @property
    def shown(self) -> str:
        """The output, and how it ended unless well, for a language model."""
        how = "It took too long and was killed." if self.code is None else f"Exit code {self.code}."
        return self.output if self.code == 0 else f"{self.output}\n{how}".lstrip("\n")


def run(command: str, *, cwd: Path | None = None, timeout: float | None = None, limit: int = 20_000) -> Finished:
    """Run a command in `sh`, with everything it starts.

    Args:
        cwd: Where; here if None.
        timeout: Seconds after which all of it is killed.
        limit: Characters of output that are kept, half of them of its beginning.
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
    """The output of a killed program: what its descendants may still write is not waited for."""
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
