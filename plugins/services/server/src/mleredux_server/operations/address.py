"""The address and the runs directory of a server, claimed before its libraries are imported, which takes seconds."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.files import FileLock, write_atomically

from mleredux_server.settings import Settings

_BACKLOG = 2048
_FIRST_PASSED = 3
BEAT_SECONDS = 1.0


def bound(settings: Settings) -> socket.socket:
    """Return a listening socket, before anything is created that a failed start would leave behind.

    Clients that connect during the imports wait instead of being refused. A socket passed by systemd (or another
    manager with its protocol, sd_listen_fds(3)) is used instead: it outlives the server, so that no client is refused
    while the server is restarted.

    Raises:
        MlereduxError: The address can't be used.
    """
    if os.environ.pop("LISTEN_PID", "") == str(os.getpid()) and os.environ.pop("LISTEN_FDS", "") == "1":
        passed = socket.socket(fileno=_FIRST_PASSED)
        passed.set_inheritable(False)
        if passed.family in (socket.AF_INET, socket.AF_INET6) and passed.type == socket.SOCK_STREAM:
            return passed
        raise MlereduxError("The passed socket is not a TCP socket.", hint="Write ListenStream=HOST:PORT in its unit.")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Without an explicit protocol, asyncio does not disable Nagle's algorithm, which delays each response by 40 ms.
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with file_errors(MlereduxError, f"Can't listen on {settings.host}:{settings.port}", "Choose another --port."):
        server_socket.bind((settings.host, settings.port))
        server_socket.listen(_BACKLOG)
    return server_socket


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Lock a runs directory against other servers.

    Raises:
        MlereduxError: Another server uses the directory.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(settings.state_dir / "server.lock")
    hint = "Mount its file system with locks, or use a --runs-dir on another file system."
    with file_errors(MlereduxError, f"Files in {settings.runs_dir} can't be locked", hint):
        acquired = lock.acquire()
        works = lock.held_elsewhere()
    beat = None if works else Heartbeat(settings.state_dir / "server.beat")
    if not acquired or (beat is not None and not beat.start()):
        hint = "Stop it first, or use another --runs-dir."
        raise MlereduxError(f"Another server already uses {settings.runs_dir}.", hint=hint)
    try:
        yield
    finally:
        if beat is not None:
            beat.stop()
        lock.release()


class Heartbeat:
    """A file that a server rewrites periodically, for file systems on which locks have no effect.

    A server that finds another server's mark in it exits: it was suspended for so long that the other one took its
    place.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._mark, self._stopping = path, secrets.token_hex(8), threading.Event()

    def start(self) -> bool:
        """Start writing; return False if another server already does."""
        before = self._read()
        if before and self._other(before):
            return False
        self._write()
        if self._stopping.wait(BEAT_SECONDS) or not self._read().startswith(self._mark):  # two servers start at once
            return False
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        return True

    def stop(self) -> None:
        """Stop writing, and release the directory for other servers."""
        self._stopping.set()
        if self._read().startswith(self._mark):
            self._path.unlink(missing_ok=True)

    def _other(self, before: str) -> bool:
        """Return whether another server is alive, by waiting for its next write."""
        for _ in range(4):
            if self._stopping.wait(BEAT_SECONDS):
                return True
            if self._read() not in (before, ""):
                return True
        return False

    def _beat(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            current = self._read()
            if current and not current.startswith(self._mark):
                os.kill(os.getpid(), signal.SIGTERM)
                return
            self._write()

    def _read(self) -> str:
        with contextlib.suppress(OSError):
            return self._path.read_text(encoding="utf-8")
        return ""

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk
            write_atomically(self._path, f"{self._mark} {time.time()}")
