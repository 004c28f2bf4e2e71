"""Streaming an agent's output from the engine into the run's log: bytes, none lost, none repeated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError

from mleredux_docker.engine import connect, gone_is_fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

_COMPARED = 4096


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
        with self.log.open("ab") as file:
            taken = file.tell() - self.offset
            if taken > 0 and self._rotated(client, taken):
                # Nobody followed for long, and the engine's log has begun anew: go on with what came after.
                stream = _stream(client, self.container, since=self.log.stat().st_mtime)
                taken = 0
            else:
                stream = _stream(client, self.container)
            for data in stream:
                fresh = data[taken:]
                taken = max(0, taken - len(data))
                if fresh:
                    file.write(fresh)
                    file.flush()

    def _rotated(self, client: APIClient, taken: int) -> bool:
        """Whether the engine's log begins later than the run's."""
        with self.log.open("rb") as file:
            file.seek(self.offset)
            ours = file.read(min(taken, _COMPARED))
        theirs = b""
        stream = _stream(client, self.container, follow=False)
        for data in stream:
            theirs += data
            if len(theirs) >= len(ours):
                break
        return theirs[: len(ours)] != ours


def _stream(
    client: APIClient, container: str, *, follow: bool = True, since: float | None = None
) -> Iterator[bytes]:
    options: dict[str, Any] = {} if since is None else {"since": since}
    stream: Iterator[bytes] = client.logs(
        container, stdout=True, stderr=True, stream=True, follow=follow, **options
    )
    return stream
