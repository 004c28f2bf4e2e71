"""Copy an agent's output from the engine to the run's log continuously, without lost or repeated bytes, although the
engine may drop the beginning of its stream at any time."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from mleredux.errors import SandboxError
from mleredux_containers import exit_of

from mleredux_sandbox_docker.engine import connect, engine_errors, ignore_missing

if TYPE_CHECKING:
    from docker import APIClient


Message = tuple[int, bytes, bytes]
"""Stream (1 standard output, 2 standard error), time in the engine's format, and text."""
_REMEMBERED = 50_000
_FULL_MESSAGE = 16 << 10
_HEADER = 8
_TIME = re.compile(r"([^.]+?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def messages(blocks: Iterable[bytes]) -> Iterator[list[Message]]:
    """Yield the messages of each block of a stream with timestamps.

    Each has a header of 8 bytes: the first is its stream, the last 4 are its size.
    """
    buffer = bytearray()
    for block in blocks:
        buffer += block
        begin, texts = 0, []
        while len(buffer) - begin >= _HEADER:
            end = begin + _HEADER + int.from_bytes(buffer[begin + 4 : begin + _HEADER], "big")
            if end > len(buffer):
                break
            time, _, text = bytes(buffer[begin + _HEADER : end]).partition(b" ")
            # The engine splits long lines into messages of full size, and may omit the newline after the last message.
            if not text.endswith(b"\n") and len(text) < _FULL_MESSAGE:
                text += b"\n"
            texts.append((buffer[begin], time, text))
            begin = end
        del buffer[:begin]
        if texts:
            yield texts


def without_repeats(pieces: Iterable[list[Message]]) -> Iterator[list[Message]]:
    """Yield the messages of a followed stream without repeats.

    An engine that starts a new log file may send the messages in it a second time. The messages of a stream have unique
    times, in nanoseconds, except that the parts of a long line share a time. So a time that occurred before the
    stream's last time identifies a repeat, even if the clock is set back.
    """
    newest: dict[int, set[bytes]] = {}
    older: dict[int, set[bytes]] = {}
    # By stream: the last time, the number of messages with that time, how many of these were repeated, and the last
    # text.
    states: dict[int, tuple[bytes, int, int | None, bytes]] = {}
    for piece in pieces:
        fresh = []
        for message in piece:
            stream, time, text = message
            last, count, again, before = states.get(stream, (b"", 0, None, b""))
            if time == last:
                if again is not None:
                    again += 1
                    repeated = again <= count
                else:
                    repeated = text == before and text.endswith(b"\n")
                states[stream] = (last, count, again, before) if repeated else (last, count + 1, None, text)
            elif time in newest.setdefault(stream, set()) or time in older.get(stream, ()):
                repeated = True
                states[stream] = (last, count, 0, before)
            else:
                repeated = False
                if len(newest[stream]) >= _REMEMBERED:
                    older[stream], newest[stream] = newest[stream], set()
                newest[stream].add(last)
                states[stream] = (time, 1, None, text)
            if not repeated:
                fresh.append(message)
        if fresh:
            yield fresh


def nanoseconds(time: str) -> int:
    """Convert an RFC 3339 time of the engine to Unix time in nanoseconds; Python parses only microseconds."""
    match = _TIME.fullmatch(time)
    if match is None:
        raise ValueError(f"The engine returned the invalid time {time!r}.")
    whole, fraction, zone = match.groups()
    seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * 10**9 + int((fraction or "0").ljust(9, "0"))


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


_CONNECT_SECONDS = 30
AGAIN_SECONDS = 1.0
"""Time between two attempts to reach an engine that does not respond."""


class LogFollower:
    """Appends a container's output to a file until the container has ended.

    The engine also keeps the newest output. So if a follower is killed, the next one finds the position in the engine's
    output and continues from there.

    Args:
        container: The container's id.
        log: The run's log.
        offset: Offset in the log at which this container's output begins, in bytes.
        noted: The file that stores how much of the output was recorded.
    """

    def __init__(self, container: str, log: Path, offset: int, noted: Path) -> None:
        self.container, self.log, self.offset, self.noted = container, log, offset, noted
        self.error: BaseException | None = None
        self._seen, self._until = 0, float("inf")
        self.failed_at = float("-inf")
        """When the engine last failed to respond, by the monotonic clock."""
        self._thread = threading.Thread(target=self._follow, name=f"log of {container[:12]}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end of the container's output, as long as new output arrives.

        Args:
            seconds: How long to wait for new output.

        Raises:
            SandboxError: The output could not be recorded.
        """
        self._until = time.monotonic() + seconds / 2
        seen = -1
        while self._thread.is_alive() and seen != self._seen:
            seen = self._seen
            self._thread.join(seconds)
        if self.error is not None:
            raise SandboxError(f"The agent's output can't be recorded: {self.error}.") from self.error
        if self._thread.is_alive():
            raise SandboxError(f"The output of container {self.container[:12]} did not end; its log may have gaps.")

    def _follow(self) -> None:
        while True:
            try:
                with engine_errors("The engine can't be read"):
                    return self._record()
            except Exception as error:  # the caller's thread raises it, in `join`
                if isinstance(error, SandboxError) and time.monotonic() < self._until:  # the engine may respond again
                    self.failed_at = time.monotonic()
                    time.sleep(AGAIN_SECONDS)
                    continue
                if getattr(error, "errno", None) != errno.ENOSPC:  # otherwise the run has used up its disk: it ends
                    self.error = error
                return None

    def _record(self) -> None:
        with closing(connect()) as client, self.log.open("a+b") as log, ignore_missing():
            # One at a time: other followers wait, then find that nothing is missing.
            fcntl.flock(log, fcntl.LOCK_EX)
            note = os.open(self.noted, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._copy(client, Transcript(self.container, log, note, self.offset))
            finally:
                os.close(note)

    def _copy(self, client: APIClient, transcript: Transcript) -> None:
        running = True
        while running:
            # An engine may end a followed stream before it has sent everything. So the last pass does not follow: once
            # the container has ended, its output is complete.
            running = exit_of(client.inspect_container(self.container)["State"]) is None
            try:
                stream = self._stream(client, follow=running)
                transcript.append(transcript.beyond_mark(stream, complete=not running))
            except DroppedError:
                transcript.append_gap()
                transcript.append(self._stream(client, follow=running))

    def _stream(self, client: APIClient, *, follow: bool) -> Iterator[list[Message]]:
        """Yield all output of the engine as it arrives. The SDK's own reader takes several times as long."""
        url = f"{client.base_url}/v{client.api_version}/containers/{self.container}/logs"
        options = {"stdout": 1, "stderr": 1, "timestamps": 1, "follow": int(follow)}
        with client.get(url, params=options, stream=True, timeout=(_CONNECT_SECONDS, None)) as response:
            if response.status_code not in (404, 409):  # removed, or about to be: there is no more output
                response.raise_for_status()
                for piece in without_repeats(messages(response.iter_content(chunk_size=None))):
                    self._seen += 1
                    yield piece
