"""Leases on the folder of a run or another job: renewed by its worker, whose writes are rejected once it is lost."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from mleredux.errors import ResumeRefused
from mleredux.plugin.files import write_atomically
from mleredux.plugin.host import process_birth as birth

FENCE_FILE = ".fence"
LEASE_FILE = ".lease"
LEASE_SECONDS = 30.0
"""Default time after which a lease that is not renewed is lost."""
LONGEST_INTERVAL = 10.0
"""Maximum seconds between two reads of the files of a job that is still running."""
_LOG_FILE, _LOCK_FILE = "events.jsonl", ".lock"
_BEATS = 15
"""Number of renewals within a lease's lifetime."""
_BUSY = 0.001
"""Share of a CPU below which a worker, including its children, makes no progress."""


def fence_of(folder: Path) -> int:
    """Return the number of the worker whose writes are accepted; 0 if no number was issued."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder / FENCE_FILE).read_text())
    return 0


def new_fence(folder: Path) -> int:
    """Issue a number for the next worker; writes by all earlier workers are rejected from now on.

    Raises:
        OSError: The number can't be written.
    """
    number = fence_of(folder) + 1
    write_atomically(folder / FENCE_FILE, str(number))
    return number


def revoke_lease(folder: Path) -> int:
    """Reject further writes of the current worker, even if it can't be killed now, and free its lock.

    A writer opens the event log, then compares its number, then writes: if it still compared the old number, it opened
    the file that is replaced here.

    Raises:
        OSError: The folder can't be written.
    """
    number = new_fence(folder)
    for name in (_LOG_FILE, _LOCK_FILE):
        with contextlib.suppress(FileNotFoundError):
            write_atomically(folder / name, (folder / name).read_bytes())
    return number


def read_lease(folder: Path) -> dict[str, Any] | None:
    """Return the worker's last lease: `fence`, `beat`, `host`, `pid`, `birth`; None if there is no valid one."""
    try:
        lease = json.loads((folder / LEASE_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return lease if isinstance(lease, dict) else None


def calm_seconds(quiet: float, longest: float = LONGEST_INTERVAL) -> float:
    """Return the seconds until files that have not changed for this many seconds are read again."""
    return min(longest, quiet / 10)


class Lease:
    """This process's lease on a folder, renewed while the thread that entered it makes progress.

    A renewing thread would keep running if a plugin deadlocked. So the lease is renewed only while this process or its
    children use some CPU time; all long waits here poll.

    Args:
        folder: The folder.
        fence: The number issued to this worker.
        seconds: Time after which a lease that is not renewed is lost.
        patience: Returns the number of seconds without progress after which it is not renewed.
    """

    def __init__(
        self, folder: Path, fence: int, *, seconds: float = LEASE_SECONDS, patience: Callable[[], float] = lambda: 900.0
    ) -> None:
        self._folder, self.fence, self._every, self._patience = folder, fence, seconds / _BEATS, patience
        self._end = threading.Event()
        self._beat, self._process = 0, {"pid": os.getpid(), "birth": birth(os.getpid())}
        self._thread = threading.Thread(target=self._renew, daemon=True, name="lease")

    def lost(self) -> bool:
        """Return whether the folder was given to another worker."""
        return fence_of(self._folder) != self.fence

    def check(self) -> None:
        """Reject a write if the lease is lost.

        Raises:
            ResumeRefused: The folder was given to another worker.
        """
        if self.lost():
            raise ResumeRefused(f"{self._folder.name} was given to another worker.", hint="This worker must stop.")

    def __enter__(self) -> Lease:
        self.check()
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        self._thread.join(self._every)

    def _write(self) -> None:
        self._beat += 1
        content = {"fence": self.fence, "beat": self._beat, "host": socket.gethostname(), **self._process}
        temporary = self._folder / f"{LEASE_FILE}-{self.fence}"
        with contextlib.suppress(OSError):  # a full disk: it is written as soon as there is room
            temporary.write_text(json.dumps(content))
            temporary.replace(self._folder / LEASE_FILE)

    def _renew(self) -> None:
        now = progress = time.monotonic()
        own, children = _own_cpu(), _children_cpu()
        while not self._end.wait(self._every):
            before, now = now, time.monotonic()
            used, own = _own_cpu() - own, _own_cpu()
            if used < _BUSY * (now - before):
                used, children = abs(_children_cpu() - children), _children_cpu()
            if used >= _BUSY * (now - before):
                progress = now
            if now - progress < self._patience() and not self.lost():
                self._write()


def _own_cpu() -> float:
    """Return the CPU seconds of this process without those of this thread."""
    return time.process_time() - time.thread_time()


def _children_cpu() -> float:
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = child.cpu_times()
            total += times.user + times.system
    return total
