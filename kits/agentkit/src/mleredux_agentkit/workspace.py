"""Programs and files in a session's sandbox, for the sandbox interfaces of other systems."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mleredux_agentkit.shell import kill, written_by

MAX_OUTPUT = 10 << 20
"""Maximum number of bytes to keep of each output stream; the last ones are kept."""
MAX_FILE = 100 << 20
"""Maximum size of a file to read or write, in bytes."""


class Completed(NamedTuple):
    """How a program ended.

    Attributes:
        code: The exit code; negative if a signal ended the program, None if it exceeded the time limit.
        stdout: The last 10 MiB of its standard output.
        stderr: The last 10 MiB of its standard error.
    """

    code: int | None
    stdout: bytes
    stderr: bytes


def execute(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    content: bytes = b"",
    timeout: float | None = None,
) -> Completed:
    """Run a program. If it can't be started, the exit code is 126 or 127, as in a shell.

    Args:
        arguments: The program and its arguments.
        cwd: The working directory.
        env: Environment variables in addition to those of this process.
        content: The standard input.
        timeout: Seconds after which the program and all processes that it started are killed.
    """
    try:
        process = subprocess.Popen(
            list(arguments),
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return Completed(code, b"", f"{arguments[0] if arguments else ''}: {error}\n".encode())
    ended: int | None = None
    try:
        stdout, stderr = process.communicate(content, timeout=timeout)
        ended = process.returncode
    except subprocess.TimeoutExpired:
        kill(process.pid)
        stdout, stderr = written_by(process)
    return Completed(ended, stdout[-MAX_OUTPUT:], stderr[-MAX_OUTPUT:])


def read(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: The file can't be read, or is larger than `MAX_FILE`.
    """
    with path.open("rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE} bytes")
    return content


def write(path: Path, content: bytes) -> None:
    """Write a file, creating missing folders.

    Raises:
        OSError: The file can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
