"""The event log of a run: one JSON object a line, append-only, sequence numbers without gaps."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux._core.store.states import RunState, fold
from mleredux.errors import MlereduxError
from mleredux.models import Event
from mleredux.models.events import Payload


class EventLog:
    """Appends to and reads `events.jsonl`, each byte of it once: what was read is kept, and folded into a state.

    Only the holder of the run's lock appends. A line that a crash left half-written is cut off before the next append
    and ignored by readers.

    Attributes:
        check: Called before each write, with the file open; raises if this process may not write any more.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.check: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._forget()

    def append(self, what: Payload | str, /, **data: Any) -> Event:
        """Write one event, a typed one or one of a type and data; it is on disk when this returns."""
        type_, data = (what.type, what.data) if isinstance(what, Payload) else (what, data)
        with self._lock:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = self._catch_up()
                event = Event(seq=len(self._events), time=datetime.now(UTC), type=type_, data=data)
                line = event.model_dump_json().encode() + b"\n"
                self.check()
                if size != self._read:
                    os.ftruncate(descriptor, self._read)
                left = memoryview(line)
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._take(event, line)
            self._seen = self._read
            return event

    def read(self, after: int = -1) -> list[Event]:
        """Events with a sequence number greater than `after`.

        Raises:
            MlereduxError: A line is no event: something else wrote into the file.
        """
        with self._lock:
            self._catch_up()
            return [event for event in self._events if event.seq > after]

    @property
    def state(self) -> RunState:
        """What all events so far come to.

        Raises:
            MlereduxError: As `read`.
        """
        with self._lock:
            self._catch_up()
            return self._state

    def _forget(self) -> None:
        self._events: list[Event] = []
        self._state = RunState()
        self._read, self._last = 0, b""  # bytes of whole lines, and the last of them
        self._seen = -1  # size of the file when it was read

    def _take(self, event: Event, line: bytes) -> None:
        self._state = fold(self._state, event)
        self._events.append(event)
        self._read, self._last = self._read + len(line), line

    def _catch_up(self) -> int:
        """Read what others appended; the size of the file."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            self._forget()
            return 0
        if size == self._seen:
            return size
        content = self._content(self._read - len(self._last), size)
        if not content.startswith(self._last):  # another file has its place
            self._forget()
            content = self._content(0, size)
        *lines, _half = content[len(self._last) :].split(b"\n")
        for line in lines:
            try:
                event = Event.model_validate(json.loads(line))
            except (ValueError, TypeError) as error:
                raise MlereduxError(
                    f"{self.path} is damaged in line {len(self._events) + 1} ({type(error).__name__}).",
                    hint="Restore it, or delete the run.",
                ) from error
            self._take(event, line + b"\n")
        self._seen = size
        return size

    def _content(self, begin: int, end: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(begin)
            return file.read(max(0, end - begin))
