"""The event log of a run: one JSON object per line, append-only, with sequence numbers without gaps."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux._core.store.files import damaged, read_bounded
from mleredux._core.store.states import RunState, fold
from mleredux.models import Event
from mleredux.models.base import MAX_EVENT_MARKS, count_marks, parse
from mleredux.models.events import Payload


class EventLog:
    """Appends to and reads `events.jsonl`. Each byte is read only once; events are kept in memory and folded into a
    state.

    Only the holder of the run's lock appends. A line left incomplete by a crash is cut off before the next append and
    ignored by readers.

    Attributes:
        check: Called before each write, with the file open; raises if this process may no longer write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.check: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._forget()

    def append(self, what: Payload | str, /, **data: Any) -> Event:
        """Write one event, given as an object or as a type with data; it is on disk when this returns."""
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
        """Return the events with a sequence number greater than `after`.

        Raises:
            MlereduxError: A line is not an event, because another program wrote to the file.
        """
        with self._lock:
            self._catch_up()
            return [event for event in self._events if event.seq > after]

    @property
    def state(self) -> RunState:
        """The state that results from all events so far.

        Raises:
            MlereduxError: As for `read`.
        """
        with self._lock:
            self._catch_up()
            return self._state

    def _forget(self) -> None:
        self._events: list[Event] = []
        self._state = RunState()
        self._read, self._last = 0, b""  # bytes of complete lines, and the last of these lines
        self._seen = -1  # size of the file when it was last read

    def _take(self, event: Event, line: bytes) -> None:
        self._state = fold(self._state, event)
        self._events.append(event)
        self._read, self._last = self._read + len(line), line

    def _catch_up(self) -> int:
        """Read events appended by others; return the size of the file."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            self._forget()
            return 0
        if size == self._seen:
            return size
        content = self._content(self._read - len(self._last), size)
        if not content.startswith(self._last):  # the file was replaced
            self._forget()
            content = self._content(0, size)
        *lines, _half = content[len(self._last) :].split(b"\n")
        for line in lines:
            try:
                event = Event.model_validate(parse(line))
            except (ValueError, TypeError) as error:
                raise damaged(self.path, error, f" in line {len(self._events) + 1}") from error
            self._take(event, line + b"\n")
        self._seen = size
        return size

    def _content(self, begin: int, end: int) -> bytes:
        try:
            content = read_bounded(self.path, begin)[: max(0, end - begin)]
            if count_marks(content) > MAX_EVENT_MARKS:
                raise OSError("has too many events")
        except OSError as error:
            raise damaged(self.path, error) from error
        return content
