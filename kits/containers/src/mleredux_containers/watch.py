"""What ends a build at its limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mleredux_containers.images import BuildLog

_LOOK_SECONDS, _MEASURE_SECONDS = 0.5, 2.0


class Watch(threading.Thread):
    """Ends what a build is doing at its time limit, and what can't be bounded else when it is too large.

    Args:
        log: Of the build; knows its time, and makes the errors.
        disk: Bytes that it may write.

    Attributes:
        stop: Ends what goes on; again and again, until `ended` is set.
        size: Bytes that it has written.
        ended: Set when the build has ended.
        timed_out: Whether the time limit ended it.
        too_large: Whether its size did.
    """

    def __init__(self, log: BuildLog, disk: int = 0) -> None:
        super().__init__(daemon=True)
        self._log, self._disk = log, disk
        self.stop: Callable[[], object] = lambda: None
        self.size: Callable[[], int] = lambda: 0
        self.ended = threading.Event()
        self.timed_out = self.too_large = False

    def run(self) -> None:
        """Look until the build has ended."""
        look_at = time.monotonic() + _MEASURE_SECONDS
        while not self.ended.wait(min(_LOOK_SECONDS, self._log.seconds_left)):
            self.timed_out = not self.too_large and self._log.seconds_left <= 0.1
            if not self.timed_out and (begun := time.monotonic()) >= look_at:
                self.too_large = self.too_large or self.size() > self._disk
                # A large tree takes long to count: spend no more than a tenth of the time on it.
                look_at = time.monotonic() + max(_MEASURE_SECONDS, 10 * (time.monotonic() - begun))
            if self.timed_out or self.too_large:
                self.stop()

    def check(self) -> None:
        """See that it was not ended.

        Raises:
            BuildFailed: It was.
        """
        if self.timed_out:
            raise self._log.timed_out()
        if self.too_large:
            raise self._log.too_large(self._disk)
