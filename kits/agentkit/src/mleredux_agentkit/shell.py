"""Run the commands of a language model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
        ending = "It took too long and was killed." if self.code is None else f"Exit code {self.code}."
        return self.output if self.code == 0 else f"{self.output}\n{ending}".lstrip("\n")


def run(
    command: str, *, cwd: Path | None = None, timeout: float | None = None, limit: int = 20_000, rest: bool = True
) -> Finished:
    """Run a command in `sh`.

    Args:
        command: The command.
        cwd: The working directory; None: the current folder.
        timeout: Seconds after which the command and all processes that it started are killed.
        limit: Maximum number of characters of output to keep, half of them from its beginning.
        rest: Whether processes that the command started in the background may remain.
    """

    with tempfile.TemporaryFile() as written:
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            rest = False
        except BaseException:
            rest = False
            raise
        finally:
            if not rest:
                kill(process.pid)
                process.wait()
        return Finished(code, ends(written, limit))


def ends(file: BinaryIO, limit: int) -> str:
    """Return the text of a file, without its middle if it is longer than a given number of characters."""
    size, half = file.seek(0, os.SEEK_END), limit // 2
    file.seek(0)
    text = file.read(4 * limit).decode("utf-8", "replace")  # as many bytes as the characters can have
    if size <= 4 * limit and len(text) <= limit:
        return text
    left = (size if size > 4 * limit else len(text)) - 2 * half
    file.seek(max(0, size - 4 * half))
    return f"{text[:half]}\n… [{left} characters left out] …\n{file.read(4 * half).decode('utf-8', 'replace')[-half:]}"


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
