"""One build: talking to the engine while it lasts, within its time limit, with a log without passwords."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux.errors import BuildFailed
from mleredux.plugin.sandbox import BuildRequest

from mleredux_sandbox_docker import host
from mleredux_sandbox_docker.engine import connect
from mleredux_sandbox_docker.recipe import Recipe

if TYPE_CHECKING:
    from docker import APIClient

NETWORK_VARIABLE = "MLEREDUX_DOCKER_BUILD_NETWORK"
_LAST_LINES = 15
_STEP = re.compile(r"^Step (\d+)/(\d+) : (.*)")


class Builder:
    """Builds and fetches images for one request; all within the request's time limit.

    Attributes:
        steps: Builds and fetches done so far; 0 where everything was found.
    """

    def __init__(self, request: BuildRequest) -> None:
        self._request = request
        self._end = time.monotonic() + request.time_limit
        self.steps = 0

    def progress(self, message: str) -> None:
        """Tell the user what is going on."""
        self._request.progress(message)

    def pull(self, client: APIClient, name: str) -> None:
        """Fetch an image from its registry."""
        self.steps += 1
        self.progress(f"fetching image {name}")
        repository, tag = _split(name)
        seen: set[str] = set()
        for line in client.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in line:
                import docker

                raise docker.errors.APIError(str(line["error"]))
            status = f"{line.get('id', '')} {line.get('status', '')}".strip()
            if status not in seen:
                seen.add(status)
                self._log(status + "\n")
            if time.monotonic() > self._end:
                raise BuildFailed(f"Image {name} was not fetched within {self._request.time_limit:g} s.")

    def build(self, plan: Recipe, tag: str, arguments: dict[str, str]) -> None:
        """Build an image.

        Raises:
            BuildFailed: A step failed, or time ran out; names the step and shows its last lines.
        """
        self.steps += 1
        arguments = {**host.build_arguments(generated=plan.generated), **arguments}
        hidden = host.secrets(arguments)
        client = connect(_cancellable())
        timed_out = threading.Event()
        with tempfile.TemporaryFile() as context:
            plan.write_tar(context)
            context.seek(0)
            stream = client.build(
                fileobj=context,
                custom_context=True,
                dockerfile=plan.dockerfile,
                tag=tag,
                buildargs=arguments,
                labels={"mleredux.image": tag},
                network_mode=_network(),
                rm=True,
                forcerm=True,
                decode=True,
            )

            def stop() -> None:
                timed_out.set()
                stream.close()

            timer = threading.Timer(max(0.1, self._end - time.monotonic()), stop)
            timer.daemon = True
            timer.start()
            try:
                self._follow(stream, hidden, timed_out)
            finally:
                timer.cancel()
                stream.close()  # where something else ended us, the engine stops building too
                client.close()
        if any(name.startswith("PIP_") and host.secrets({name: value}) for name, value in arguments.items()):
            _drop_installing_stage()

    def _follow(self, stream: Iterable[dict[str, Any]], hidden: list[str], timed_out: threading.Event) -> None:
        last: deque[str] = deque(maxlen=_LAST_LINES)
        step = "the first step"
        finished = False
        for message in stream:
            text = host.mask(str(message.get("stream") or message.get("error") or message.get("status") or ""), hidden)
            if not text.strip():
                finished = finished or "aux" in message
                continue
            self._log(text if text.endswith("\n") else text + "\n")
            last.extend(line for line in text.splitlines() if line.strip())
            if match := _STEP.match(text):
                step = f"step {match[1]} of {match[2]} ({match[3].strip()})"
                self.progress(f"building: {step}")
            if "error" in message:
                raise self._failed(f"The image's build failed at {step}", last)
        if timed_out.is_set():
            raise self._failed(f"The image was not built within {self._request.time_limit:g} s; it was at {step}", last)
        if not finished:
            raise self._failed(f"The engine broke the build off at {step}", last)

    def _failed(self, what: str, last: Iterable[str]) -> BuildFailed:
        agent = self._request.agent.id
        return BuildFailed(
            f"{what}. Agent {agent}, last lines:\n" + "\n".join(last),
            hint=f"\nAll of it: {self._request.log}",
        )

    def _log(self, text: str) -> None:
        self._request.log.parent.mkdir(parents=True, exist_ok=True)
        with self._request.log.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)


def _cancellable() -> type[APIClient]:
    """A client whose builds can be broken off, as docker's own can't."""
    from docker import APIClient
    from docker.types import CancellableStream

    class Cancellable(APIClient):
        def _stream_helper(self, response: Any, decode: bool = False) -> Any:
            plain = super()._stream_helper(response, decode)  # type: ignore[misc]
            return CancellableStream(plain, response) if decode else plain

    return Cancellable


def _drop_installing_stage() -> None:
    """Remove what the installing stage leaves in the engine: its history may hold an index's password."""
    client = connect()
    try:
        client.prune_images(  # type: ignore[no-untyped-call]
            filters={"label": "mleredux.stage=install", "dangling": True}
        )
    finally:
        client.close()


def _network() -> str | None:
    return os.environ.get(NETWORK_VARIABLE) or None


def _split(name: str) -> tuple[str, str | None]:
    """Repository and tag (or digest) of an image's name."""
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(name)
    return repository, tag or "latest"
