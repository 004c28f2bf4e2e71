"""Follow a file: one reader for all followers, with a small buffer of the latest messages.

A follower outside the buffer (because it starts earlier, or its client is slow) reads the file from its own offset
until it has caught up. So nothing is queued per follower, and a tail uses only the memory of its buffer, however many
followers it has.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import structlog
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.files.access import Cover, Opened, open_inside
from mleredux_server.files.responses import readers
from mleredux_server.streams.frames import HEARTBEAT, DamagedLog, Frame, Framing, end_message

_LOG = structlog.get_logger()
BLOCK = 64 << 10
KEPT = 256 << 10
"""Bytes of messages that are buffered for all followers of a file."""
MAX_LINE = 32 << 20
HEARTBEAT_SECONDS = 15.0
CHECK_SECONDS = 30.0
"""Seconds between checks of whether a follower may still follow."""
_POLL_SECONDS = 0.2
_BUSY_SECONDS = 0.02
"""Pause between available blocks, in seconds; if data is written faster, followers read it from their own offsets."""
_OVER_SECONDS = 1.5
_OVER_SOON_SECONDS = 0.3
_PAUSE = 0.005
"""Pause in seconds after each block that a follower reads on its own, so that a long log does not block everything
else."""


@dataclass(frozen=True)
class End:
    """The end of a stream.

    Attributes:
        status: The final status; None if it was deleted.
    """

    status: str | None


@dataclass(frozen=True)
class Followed:
    """The file that a stream follows.

    Attributes:
        root: A trusted directory.
        name: Name of the file in it.
        framing: Splits it into messages.
        over: Returns whether its writer has ended; called in a thread.
        project: Id of its project.
        cover: How to read it, if it may hold secrets.
    """

    root: Path
    name: bytes
    framing: Framing
    over: Callable[[], End | None]
    project: str
    cover: Cover | None = None


class Tail:
    """The end of a file, for all its followers.

    Args:
        followed: The file, which may not exist yet.
    """

    def __init__(self, followed: Followed) -> None:
        self._followed, self._path = followed, followed.root / os.fsdecode(followed.name)
        self._frames: dict[int, Frame] = {}
        self._kept = 0
        self._end = 0
        self._seen: tuple[int, int, int] | None = None
        self._generation = 0
        self._over: End | None = None
        self._stopped = self._final = False
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.followers = 0

    async def follow(
        self, offset: int = 0, *, after: int | None = None, may: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[bytes, None]:
        """Yield messages from an offset to the end, and comments if there are no messages for a while.

        Args:
            offset: Start offset in bytes.
            after: In an event log, yield only events with greater numbers.
            may: Returns whether this follower may still follow.
        """
        self.followers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield HEARTBEAT
            generation, checked = self._generation, time.monotonic()
            if after is not None:
                offset = next((frame.end for frame in self._frames.values() if frame.number == after), 0)
            while not self._stopped:
                if generation != self._generation:
                    generation, offset = self._generation, 0
                changed = self._changed
                frames = self._stored(offset) or await self._alone(offset)
                if frames:
                    offset = frames[-1].end
                    new = [frame for frame in frames if after is None or frame.number is None or frame.number > after]
                    if new:
                        yield b"".join(frame.message for frame in new)
                elif self._over is not None:
                    break
                else:
                    with anyio.move_on_after(HEARTBEAT_SECONDS) as waited:
                        await changed.wait()
                    if waited.cancelled_caught:
                        yield HEARTBEAT
                if time.monotonic() - checked > CHECK_SECONDS:
                    checked = time.monotonic()
                    if not await may():
                        return
            if self._over is not None and self._over.status is not None and not self._stopped:
                yield end_message(self._over.status)
        finally:
            self.followers -= 1

    @property
    def ended(self) -> bool:
        """Whether no more messages will follow."""
        return self._stopped or self._over is not None

    def stop(self) -> None:
        """Release all followers, because the server stops."""
        self._stopped = True
        self._notify()

    def _stored(self, offset: int) -> list[Frame]:
        """Return about one block of buffered messages, starting at an offset."""
        frames: list[Frame] = []
        size = 0
        while size < BLOCK and (frame := self._frames.get(offset)) is not None:
            frames.append(frame)
            size += len(frame.message)
            offset = frame.end
        return frames

    async def _alone(self, offset: int) -> list[Frame]:
        """Return messages that are no longer buffered, starting at an offset, by reading the file."""
        if offset >= self._end:
            return []
        await asyncio.sleep(_PAUSE)
        reading = partial(self._read, offset, self._end, last=self._over is not None)
        try:
            return await anyio.to_thread.run_sync(reading, limiter=readers())
        except OSError:
            return []

    def _read(self, offset: int, end: int, *, last: bool) -> list[Frame]:
        with self._open() as file:
            return self._read_open(file, offset, end, last=last)

    def _open(self) -> Opened:
        """Open the file; while more may follow, a possible beginning of a secret at its end is held back."""
        cover = self._followed.cover
        if cover is not None and self._over is not None:
            cover = replace(cover, growing=False)
        return open_inside(self._followed.root, self._followed.name, cover)

    def _read_open(self, file: Opened, offset: int, end: int, *, last: bool) -> list[Frame]:
        most = BLOCK
        while True:
            data = file.read(offset, min(most, end - offset))
            frames = self._followed.framing.frames(data, offset, last=last and offset + len(data) >= end)
            if frames or len(data) < most:
                return frames
            most *= 2
            if most > MAX_LINE:
                raise DamagedLog(f"a line is longer than {MAX_LINE:,} bytes")

    async def _watch(self) -> None:
        """Read new data while there are followers, and detect the end."""
        checked = 0.0
        try:
            while self.followers and not self._stopped:
                if await self._read_new():
                    await asyncio.sleep(_BUSY_SECONDS)
                    continue
                every = _OVER_SOON_SECONDS if self._final else _OVER_SECONDS
                if time.monotonic() - checked >= every:
                    checked = time.monotonic()
                    over = await anyio.to_thread.run_sync(self._is_over)
                    if over is not None:
                        await self._finish(over)
                        return
                await asyncio.sleep(_POLL_SECONDS)
        except DamagedLog as error:
            _LOG.error("an event log is damaged", path=str(self._path), reason=str(error))
            self.stop()
        finally:
            self._task = None

    def _is_over(self) -> End | None:
        try:
            return self._followed.over()
        except SQLAlchemyError:
            return None  # checked again soon

    async def _finish(self, over: End) -> None:
        """Read the remaining data; if it is large, followers read it themselves."""
        size = self._size()
        while self._end < size and await self._read_new():
            size = self._size()
        self._end, self._over = max(self._end, size), over
        self._notify()

    def _size(self) -> int:
        try:
            return self._path.lstat().st_size
        except OSError:
            return 0

    async def _read_new(self) -> bool:
        """Read some of the new data; return whether there was any."""
        try:
            status = self._path.lstat()
        except OSError:
            return False
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return False
        try:
            frames = await anyio.to_thread.run_sync(self._new_frames, limiter=readers())
        except OSError:
            self._seen = seen  # not a regular file: nothing to read until it is replaced
            return False
        if not frames:
            self._seen = seen
            return False
        self._keep(frames)
        return True

    def _new_frames(self) -> list[Frame]:
        """Return new messages, in a thread; followers read data that is too large for the buffer themselves."""
        with self._open() as file:
            if file.size < self._end:  # truncated, or of a new attempt; masking keeps a file's length
                if self._followed.framing.appends_only:
                    raise DamagedLog("it was truncated")
                self._frames, self._kept, self._end = {}, 0, 0  # followers start again
                self._generation += 1
            if not self._followed.framing.appends_only and file.size - self._end > KEPT:
                self._frames, self._kept, self._end = {}, 0, file.size - KEPT
            return self._read_open(file, self._end, file.size, last=False)

    def _keep(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._frames[frame.start] = frame
            self._kept += len(frame.message)
            self._end = frame.end
            self._final = frame.final
        while self._kept > KEPT and len(self._frames) > 1:
            oldest = self._frames.pop(next(iter(self._frames)))
            self._kept -= len(oldest.message)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
