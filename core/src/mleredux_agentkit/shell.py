"""Commands of a language model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple


class Finished(NamedTuple):
    """How a command ended.

    Attributes:
        code: Its exit code; negative where a signal ended it; None where it took too long.
        output: What it wrote to standard output and error, in order.
    """

    code: int | None
    output: str


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
        written, _ = process.communicate()
    except BaseException:
        kill(process.pid)
        raise
    output = written.decode("utf-8", "replace")
    if len(output) > limit:
        half = limit // 2
        output = f"{output[:half]}\n… [{len(output) - 2 * half} characters left out] …\n{output[-half:]}"
    return Finished(code, output)


def kill(group: int) -> None:
    """Kill a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
