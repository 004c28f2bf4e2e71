"""Copy an agent's output from the engine to the run's log continuously, without lost or repeated bytes."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.errors import SandboxError
from mleredux_containers import exit_of

from mleredux_sandbox_docker.engine import connect, gone_is_fine
from mleredux_sandbox_docker.transcript import DroppedError, Message, Transcript, messages, without_repeats

if TYPE_CHECKING:
    from docker import APIClient

_CONNECT_SECONDS = 30


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
        self._seen = 0
        self._thread = threading.Thread(target=self._follow, name=f"log of {container[:12]}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end of the container's output, as long as new output arrives.

        Args:
            seconds: How long to wait for new output.

        Raises:
            SandboxError: The output could not be recorded.
        """
        seen = -1
        while self._thread.is_alive() and seen != self._seen:
            seen = self._seen
            self._thread.join(seconds)
        if self.error is not None:
            raise SandboxError(f"The agent's output can't be recorded: {self.error}.") from self.error
        if self._thread.is_alive():
            raise SandboxError(f"The output of container {self.container[:12]} did not end; its log may have gaps.")

    def _follow(self) -> None:
        try:
            client = connect()
            try:
                with self.log.open("a+b") as log, gone_is_fine():
                    # One at a time: other followers wait, then find that nothing is missing.
                    fcntl.flock(log, fcntl.LOCK_EX)
                    note = os.open(self.noted, os.O_RDWR | os.O_CREAT, 0o644)
                    try:
                        self._copy(client, Transcript(self.container, log, note, self.offset))
                    finally:
                        os.close(note)
            finally:
                client.close()
        except Exception as error:  # the caller's thread raises it, in `join`
            if getattr(error, "errno", None) != errno.ENOSPC:  # otherwise the run has used up its disk, which ends it
                self.error = error

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
