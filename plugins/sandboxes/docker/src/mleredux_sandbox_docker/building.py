"""Images of the Docker engine: found, fetched, built within a time limit."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux.errors import BuildFailed, SandboxError
from mleredux.plugin.container import BuildLog, Image, Recipe

from mleredux_sandbox_docker.engine import connect, find_image, reason

if TYPE_CHECKING:
    from docker import APIClient

NETWORK_VARIABLE = "MLEREDUX_DOCKER_BUILD_NETWORK"


class DockerImages:
    """Implements `mleredux.plugin.container.ImageEngine` for a client's engine."""

    id = "docker"

    def __init__(self, client: APIClient) -> None:
        self._client = client

    def find_image(self, name: str) -> Image | None:
        """An image of the engine."""
        return find_image(self._client, name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry."""
        import docker
        import requests
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        seen: set[str] = set()
        try:
            for line in self._client.pull(repository, tag=tag or "latest", stream=True, decode=True):
                if "error" in line:
                    raise SandboxError(str(line["error"]))
                status = f"{line.get('id', '')} {line.get('status', '')}".strip()
                if status not in seen:
                    seen.add(status)
                    log.write(status)
                if log.seconds_left <= 0.1:
                    raise BuildFailed(f"Image {name} was not fetched within {log.request.time_limit:g} s.")
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise SandboxError(reason(error)) from error

    def build_image(self, plan: Recipe, tag: str, arguments: dict[str, str], log: BuildLog, *, secret: bool) -> None:
        """Build an image; broken off at the time limit."""
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
                network_mode=os.environ.get(NETWORK_VARIABLE) or None,
                rm=True,
                forcerm=True,
                decode=True,
            )

            def stop() -> None:
                timed_out.set()
                stream.close()

            timer = threading.Timer(log.seconds_left, stop)
            timer.daemon = True
            timer.start()
            try:
                _follow(stream, log, timed_out)
            finally:
                timer.cancel()
                stream.close()  # where something else ended us, the engine stops building too
                client.close()
        if secret:  # the installing stage is left in the engine; its history may hold an index's password
            self._client.prune_images(  # type: ignore[no-untyped-call]
                filters={"label": "mleredux.stage=install", "dangling": True}
            )


def _follow(stream: Iterable[dict[str, Any]], log: BuildLog, timed_out: threading.Event) -> None:
    finished = False
    for message in stream:
        log.write(str(message.get("stream") or message.get("error") or message.get("status") or ""))
        finished = finished or "aux" in message
        if "error" in message:
            raise log.failed()
    if timed_out.is_set():
        raise log.timed_out()
    if not finished:
        raise log.broken_off()


def _cancellable() -> type[APIClient]:
    """A client whose builds can be broken off, as docker's own can't."""
    from docker import APIClient
    from docker.types import CancellableStream

    class Cancellable(APIClient):
        def _stream_helper(self, response: Any, decode: bool = False) -> Any:
            plain = super()._stream_helper(response, decode)  # type: ignore[misc]
            return CancellableStream(plain, response) if decode else plain

    return Cancellable
