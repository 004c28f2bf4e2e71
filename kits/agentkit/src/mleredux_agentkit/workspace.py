"""Programs and files of a session's sandbox, as interfaces of other systems' sandboxes ask for them."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mleredux_agentkit.shell import kill, written_by

MAX_OUTPUT = 10 << 20
"""Bytes of each output stream that are kept: the last ones."""
MAX_FILE = 100 << 20
"""Bytes of a file that can be read or written."""


class Completed(NamedTuple):
    """How a program ended.

    Attributes:
        code: Its exit code; negative where a signal ended it; None where it took too long.
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
    """Run a program with everything it starts; one that can't be started ends with 126 or 127, as in a shell.

    Args:
        env: Variables besides those of this process.
        content: Its standard input.
        timeout: Seconds after which all of it is killed.
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
    """The content of a file.

    Raises:
        OSError: It can't be read, or is larger than `MAX_FILE`.
    """
    with path.open("rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE} bytes")
    return content


def write(path: Path, content: bytes) -> None:
    """Write a file, in folders that are made.

    Raises:
        OSError: It can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
