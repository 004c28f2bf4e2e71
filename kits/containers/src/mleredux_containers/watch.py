"""Stop builds at their limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mleredux_containers.images import BuildLog

_POLL_SECONDS, _MEASURE_SECONDS = 0.5, 2.0


class Watch(threading.Thread):
    """Stops a build at its time limit, and at its disk limit if that can't be enforced otherwise.

    Args:
        log: The log of the build, which knows the remaining time and creates the errors.
        disk: Maximum number of bytes that it may write.

    Attributes:
        stop: Stops the current work; called repeatedly until `ended` is set.
        size: Returns the number of bytes written so far.
        ended: Set when the build has ended.
        timed_out: Whether the time limit was exceeded.
        too_large: Whether the disk limit was exceeded.
    """

    def __init__(self, log: BuildLog, disk: int = 0) -> None:
        super().__init__(daemon=True)
        self._log, self._disk = log, disk
        self.stop: Callable[[], object] = lambda: None
        self.size: Callable[[], int] = lambda: 0
        self.ended = threading.Event()
        self.timed_out = self.too_large = False

    def run(self) -> None:
        """Check the limits until the build has ended."""
        measure_at = time.monotonic() + _MEASURE_SECONDS
        while not self.ended.wait(min(_POLL_SECONDS, self._log.seconds_left)):
            self.timed_out = not self.too_large and self._log.seconds_left <= 0.1
            if not self.timed_out and (begun := time.monotonic()) >= measure_at:
                self.too_large = self.too_large or self.size() > self._disk
                # Measuring a large tree takes long: spend at most a tenth of the time on it.
                measure_at = time.monotonic() + max(_MEASURE_SECONDS, 10 * (time.monotonic() - begun))
            if self.timed_out or self.too_large:
                self.stop()

    def check(self) -> None:
        """Check that the build was not stopped.

        Raises:
            BuildFailed: A limit was exceeded.
        """
        if self.timed_out:
            raise self._log.timed_out()
        if self.too_large:
            raise self._log.too_large(self._disk)
