"""Streaming an agent's output from the engine into the run's log: bytes, none lost, none repeated."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError

from mleredux_docker.container import exit_of
from mleredux_docker.engine import connect, gone_is_fine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from docker import APIClient

_FULL_MESSAGE = 16 << 10
_HEADER = 8
_CONNECT_SECONDS = 30


class _BegunAnewError(Exception):
    """The engine's log does not begin as ours does."""


class LogFollower:
    """Appends a container's output to a file until the container has ended.

    The engine keeps the output too. So a follower that comes after another one was killed knows where to
    go on: what stands in the file after `offset` was taken already, and is passed over in the engine's stream.

    Args:
        container: The container's id.
        log: The run's log.
        offset: Where in the log this container's output begins, in bytes.
    """

    def __init__(self, container: str, log: Path, offset: int) -> None:
        self.container, self.log, self.offset = container, log, offset
        self.error: BaseException | None = None
        self._seen = 0
        self._thread = threading.Thread(target=self._follow, name=f"log of {container[:12]}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end of the container's output, as long as it goes on.

        Args:
            seconds: How long to wait while nothing comes.

        Raises:
            SandboxError: The output could not be taken down.
        """
        seen = -1
        while self._thread.is_alive() and seen != self._seen:
            seen = self._seen
            self._thread.join(seconds)
        if self.error is not None:
            raise SandboxError(f"The agent's output can't be taken down: {self.error}.") from self.error
        if self._thread.is_alive():
            raise SandboxError(f"The output of container {self.container[:12]} does not end; its log may lack some.")

    def _follow(self) -> None:
        try:
            client = connect()
            try:
                # One at a time: whoever else follows waits, and then finds that nothing is lacking.
                with self.log.open("ab") as lock, gone_is_fine():
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    self._copy(client)
            finally:
                client.close()
        except Exception as error:  # the caller's thread raises it, in `join`
            self.error = error

    def _copy(self, client: APIClient) -> None:
        running = True
        while running:
            # An engine may end a stream that is followed before all of it was sent, so the last pass follows nothing:
            # once the container has ended, its output is complete.
            running = exit_of(client.inspect_container(self.container)["State"]) is None
            try:
                self._append(_stream(client, self.container, follow=running), self.offset)
            except _BegunAnewError:
                # So much was written that the engine has dropped the beginning: take what is newer than the log.
                written = self.log.stat()
                stream = _stream(client, self.container, follow=running, since=written.st_mtime)
                self._append(stream, written.st_size)

    def _append(self, stream: Iterator[bytes], position: int) -> None:
        """Append what the log does not hold yet of a stream that begins at a position of the log, in bytes."""
        with self.log.open("a+b") as file:
            held = file.seek(0, os.SEEK_END)
            for data in stream:
                self._seen += 1
                ours = b""
                if position < held:
                    file.seek(position)
                    ours = file.read(len(data))
                    if ours != data[: len(ours)]:
                        raise _BegunAnewError
                position += len(data)
                if len(ours) < len(data):
                    file.write(data[len(ours) :])
                    file.flush()


def _stream(client: APIClient, container: str, *, follow: bool, since: float | None = None) -> Iterator[bytes]:
    """The container's output, in pieces as they come. The SDK's own reading takes several times as long."""
    url = f"{client.base_url}/v{client.api_version}/containers/{container}/logs"
    options: dict[str, Any] = {"stdout": 1, "stderr": 1, "follow": int(follow)}
    if since is not None:
        options["since"] = f"{since:.9f}"
    with client.get(url, params=options, stream=True, timeout=(_CONNECT_SECONDS, None)) as response:
        if response.status_code not in (404, 409):  # removed, or about to be: there is nothing more
            response.raise_for_status()
            yield from messages(response.iter_content(chunk_size=None))


def messages(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The messages within the engine's stream: each has a header of 8 bytes, the last 4 of which are its size."""
    buffer = bytearray()
    for block in blocks:
        buffer += block
        begin, found = 0, []
        while len(buffer) - begin >= _HEADER:
            end = begin + _HEADER + int.from_bytes(buffer[begin + 4 : begin + _HEADER], "big")
            if end > len(buffer):
                break
            message = bytes(buffer[begin + _HEADER : end])
            found.append(message)
            # The engine cuts long lines into messages of full size, and may forget the line's end after the last.
            if not message.endswith(b"\n") and len(message) < _FULL_MESSAGE:
                found.append(b"\n")
            begin = end
        del buffer[:begin]
        if found:
            yield b"".join(found)
