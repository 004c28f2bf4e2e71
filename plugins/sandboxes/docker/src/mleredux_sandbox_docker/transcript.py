"""Record a run's log from a stream of messages whose beginning may be dropped at any time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from mleredux_sandbox_docker.messages import Message, nanoseconds

_NOTE_BYTES = 256
GAP = b"[mleredux: the engine has dropped output that belongs here]\n"
"""Marks a position in the log where output is missing, because the engine dropped it before it was recorded."""


class Mark(NamedTuple):
    """The position up to which a container's output was recorded.

    Within a stream, the engine's times never decrease. So a stream, a time, and a number among the stream's messages of
    that time identify a message, whatever was dropped before it.

    Attributes:
        begin: Offset in the log at which the container's output begins, in bytes.
        size: Offset in the log up to which it was recorded, in bytes.
        stream: The last message's stream; 0 if none was recorded yet.
        number: Its number among the stream's messages of the same time, from 1.
        time: Its time, in the engine's format.
    """

    begin: int
    size: int
    stream: int = 0
    number: int = 0
    time: str = "-"


class DroppedError(Exception):
    """The output that the engine still has does not continue the recorded output."""


class Transcript:
    """A container's output in the run's log.

    The position is stored in a note after each piece. Messages that the log already contains beyond that position are
    ignored; this happens if the program was killed in between.

    Args:
        container: The container's id.
        log: The run's log, open for reading and appending.
        note: Descriptor of the note's file, open for reading and writing. A note of another container is ignored.
        offset: Offset in the log at which this container's output begins, in bytes, if there is no note.
    """

    def __init__(self, container: str, log: BinaryIO, note: int, offset: int) -> None:
        self.container, self._log, self._note = container, log, note
        self.mark = Mark(offset, offset)
        self._numbers: dict[int, tuple[bytes, int]] = {}  # by stream: the last message's time and its number
        noted, *fields = os.pread(note, _NOTE_BYTES, 0).decode().split() or [""]
        if noted == container:
            begin, size, stream, number = map(int, fields[:4])
            mark = Mark(begin, size, stream, number, fields[4])
            self.mark = mark if mark.size <= log.seek(0, os.SEEK_END) else Mark(mark.begin, mark.begin)

    def append(self, pieces: Iterable[list[Message]]) -> None:
        """Append messages beyond the mark that are missing from the log, and advance the mark after each piece.

        Raises:
            DroppedError: The log contains different bytes beyond the mark.
        """
        begin, size, stream, number, time = self.mark
        self._numbers = {stream: (time.encode(), number)}
        for piece in pieces:
            for stream, at, _ in piece:
                self._count(stream, at)
            data = b"".join([text for _, _, text in piece])
            self._log.seek(size)
            held = self._log.read(len(data))
            if not data.startswith(held):
                raise DroppedError
            self._log.write(data[len(held) :])
            size += len(data)
            at, number = self._numbers[stream]
            self._set(Mark(begin, size, stream, number, at.decode()))

    def append_gap(self) -> None:
        """Mark missing output in the log, and record all output of the engine from here."""
        self._log.seek(0, os.SEEK_END)
        self._log.write(GAP)
        self._set(Mark(self._log.tell(), self._log.tell()))

    def beyond_mark(self, pieces: Iterator[list[Message]], *, complete: bool) -> Iterator[list[Message]]:
        """Yield the messages of the engine beyond the mark.

        Args:
            pieces: All messages that the engine has.
            complete: Whether no more messages will follow.

        Raises:
            DroppedError: The mark's message is not among them, or can't be distinguished from others of the same time.
        """
        mark = self.mark
        if mark.stream == 0:
            yield from pieces
            return
        self._numbers = {}
        passed = number = 0
        first_of_time = False
        for piece in pieces:
            for place, (stream, at, text) in enumerate(piece, 1):
                passed += len(text)
                self._count(stream, at)
                if stream != mark.stream:
                    continue
                later = nanoseconds(at.decode()) - nanoseconds(mark.time)
                if later > 0:
                    raise DroppedError
                first_of_time = first_of_time or later < 0
                number += later == 0
                if number == mark.number:
                    # If the engine's output begins at exactly this time, messages of that time may have been dropped.
                    if not first_of_time and passed != mark.size - mark.begin:
                        raise DroppedError
                    if piece[place:]:
                        yield piece[place:]
                    yield from pieces
                    return
        if complete and passed:
            raise DroppedError

    def _count(self, stream: int, at: bytes) -> None:
        """Count a message among those of its stream and time, including skipped messages."""
        before, number = self._numbers.get(stream, (b"", 0))
        self._numbers[stream] = (at, number + 1 if at == before else 1)

    def _set(self, mark: Mark) -> None:
        """Move the mark and overwrite its note with a single write, so that a kill leaves the old note or the new
        one."""
        self._log.flush()
        self.mark = mark
        os.pwrite(self._note, " ".join(map(str, (self.container, *mark))).ljust(_NOTE_BYTES).encode(), 0)
