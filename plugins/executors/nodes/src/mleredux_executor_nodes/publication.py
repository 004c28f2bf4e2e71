"""Continuous publication of a run while a node executes it."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from mleredux.errors import ResumeRefused, StoreError

from mleredux_executor_nodes.lease import next_fence
from mleredux_executor_nodes.replica import Replica

_EVERY = 2.0
_SHARE = 10
"""Publishing takes at most 1 / `_SHARE` of the time."""
_LONGEST = 20.0
_PATIENCE = 3600.0
_SHORT_PATIENCE = 20.0


class Publication:
    """Publishes a run whenever its directory changes, and once more at the end.

    Args:
        replica: The claimed run.
        folder: The run's directory.
    """

    def __init__(self, replica: Replica, folder: Path) -> None:
        self._replica, self._folder = replica, folder
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="publication", daemon=True)

    def __enter__(self) -> Publication:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        end = time.monotonic() + (_SHORT_PATIENCE if isinstance(error, SystemExit) else _PATIENCE)
        while True:
            try:
                return self._replica.push(all_again=True)
            except ResumeRefused:
                return None
            except StoreError as problem:
                print(problem, file=sys.stderr)
                if time.monotonic() > end:
                    raise
                time.sleep(_EVERY)

    def _work(self) -> None:
        pause = _EVERY
        while not self._end.wait(pause):
            began = time.monotonic()
            try:
                self._replica.push()
            except ResumeRefused as error:
                print(error, file=sys.stderr)
                next_fence(self._folder)  # the lease is lost: nothing more is written
                return
            except (StoreError, OSError) as error:  # the run continues; it is published when the store responds
                print(error, file=sys.stderr)
            pause = min(max(_EVERY, _SHARE * (time.monotonic() - began)), _LONGEST)
            with contextlib.suppress(OSError):
                sys.stderr.flush()
