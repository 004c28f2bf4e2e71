"""The event log of a run: one JSON object a line, append-only, sequence numbers without gaps."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux._core.models import Event
from mleredux.errors import MlereduxError


class EventLog:
    """Appends to and reads `events.jsonl`.

    Only the holder of the run's lock appends. A line that a crash left half-written is cut off before the next append
    and passed over by readers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next: int | None = None
        self._lock = threading.Lock()

    def append(self, type_: str, **data: Any) -> Event:
        """Write one event; it is on disk when this returns."""
        with self._lock:
            if self._next is None:
                self._next = self._mend()
            event = Event(seq=self._next, time=datetime.now(UTC), type=type_, data=data)
            line = event.model_dump_json().encode() + b"\n"
            number, self._next = self._next, None  # until it is written whole: a failure leaves half a line to mend
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._next = number + 1
            return event

    def read(self, after: int = -1) -> Iterator[Event]:
        """Events with a sequence number greater than `after`.

        Raises:
            MlereduxError: A line is no event: something else wrote into the file.
        """
        for number, line in enumerate(self._whole_lines(), start=1):
            try:
                fields = json.loads(line)
                if fields["seq"] > after:
                    yield Event.model_validate(fields)
            except (ValueError, KeyError, TypeError) as error:
                raise MlereduxError(
                    f"{self.path} is damaged in line {number} ({type(error).__name__}).",
                    hint="Restore it, or delete the run.",
                ) from error

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        yield from content.split(b"\n")[:-1]

    def _mend(self) -> int:
        """Cut off a half-written last line; give the next sequence number."""
        if not self.path.exists():
            return 0
        whole = sum(len(line) + 1 for line in self._whole_lines())
        if whole != self.path.stat().st_size:
            os.truncate(self.path, whole)
        return sum(1 for _ in self._whole_lines())
