"""Streaming an agent's output from the engine into the run's log: bytes, none lost, none repeated."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError

from mleredux_docker.container import exit_of
from mleredux_docker.engine import connect, gone_is_fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

_FULL_MESSAGE = 16 << 10


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
        self._thread = threading.Thread(target=self._follow, name=f"log of {container[:12]}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the end of the container's output; whether it was reached.

        Raises:
            SandboxError: The output could not be taken down.
        """
        self._thread.join(seconds)
        if self.error is not None:
            raise SandboxError(f"The agent's output can't be taken down: {self.error}.") from self.error
        return not self._thread.is_alive()

    def _follow(self) -> None:
        try:
            client = connect()
            try:
                with gone_is_fine():
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
    options: dict[str, Any] = {} if since is None else {"since": since}
    stream: Iterator[bytes] = client.logs(container, stdout=True, stderr=True, stream=True, follow=follow, **options)
    for message in stream:
        # The engine cuts long lines into messages of full size, and may forget the end of the line after the last.
        complete = message.endswith(b"\n") or len(message) >= _FULL_MESSAGE
        yield message if complete else message + b"\n"
