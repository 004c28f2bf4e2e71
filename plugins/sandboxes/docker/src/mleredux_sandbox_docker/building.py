"""Images of the Docker engine: found, fetched, built within limits."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux.errors import BuildFailed, SandboxError
from mleredux.plugin.container import BuildLimits, BuildLog, Container, Image, Recipe

from mleredux_sandbox_docker.container import settings
from mleredux_sandbox_docker.engine import connect, find_image, gone_is_fine, reason

if TYPE_CHECKING:
    from docker import APIClient

_RUNNING = re.compile(r"\s*---> Running in ([0-9a-f]{12})\s*")
_LOOK_SECONDS = 2.0
_PERIOD = 100_000
_TRIES, _TRY_SECONDS = 20, 0.05
_LIVE = ("created", "running")


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

    def start_sidecar(self, made: Container) -> str:
        """Start a container that removes itself when it ends."""
        arguments = settings(made)
        arguments["host_config"]["auto_remove"] = True
        arguments["host_config"] = self._client.create_host_config(**arguments["host_config"])
        created = str(self._client.create_container(**arguments)["Id"])
        self._client.start(created)
        return created

    def remove_sidecar(self, container: str) -> None:
        """End and remove it."""
        with gone_is_fine():
            self._client.remove_container(container, force=True)

    def build_image(
        self,
        plan: Recipe,
        tag: str,
        arguments: dict[str, str],
        log: BuildLog,
        *,
        secret: bool,
        limits: BuildLimits,
        sidecar: str | None,
    ) -> None:
        """Build an image; ended at its time limit, or when a step writes too much."""
        client = connect(_cancellable())
        network = f"container:{sidecar}" if sidecar else "none"
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
                network_mode=network,
                container_limits={"memory": limits.memory, "memswap": limits.memory},
                rm=True,
                forcerm=True,
                decode=True,
            )
            watch = _Watch(self._client, stream, log, limits, network)
            watch.start()
            try:
                _follow(stream, log, watch)
            finally:
                watch.ended.set()
                stream.close()  # where something else ended us, the engine stops building too
                client.close()
        if secret:  # the installing stage is left in the engine; its history may hold an index's password
            self._client.prune_images(  # type: ignore[no-untyped-call]
                filters={"label": "mleredux.stage=install", "dangling": True}
            )


class _Watch(threading.Thread):
    """Ends a build at its limits of time and disk.

    The builder has no limit of processes: each step gets it, and that of CPUs, when it starts.
    """

    def __init__(self, client: APIClient, stream: Any, log: BuildLog, limits: BuildLimits, network: str) -> None:
        super().__init__(daemon=True)
        self._client, self._stream, self._log, self._limits, self._network = client, stream, log, limits, network
        self._step: str | None = None
        self.ended = threading.Event()
        self.problem: BuildFailed | None = None

    def run(self) -> None:
        while not self.ended.wait(min(_LOOK_SECONDS, self._log.seconds_left)):
            if self._log.seconds_left <= 0.1:
                self.problem = self._log.timed_out()
            elif self._size() > self._limits.disk:
                self.problem = self._log.too_large(self._limits.disk)
            if self.problem is not None:
                self._stream.close()
                return

    def begin(self, step: str) -> None:
        """Limit the container of a step. Its output may name another container, which has other limits or networks."""
        import docker

        for tries in range(_TRIES):
            with gone_is_fine():
                found = self._client.inspect_container(step)
                settings = (found["HostConfig"]["NetworkMode"], found["HostConfig"]["Memory"])
                if settings != (self._network, self._limits.memory) or found["State"]["Status"] not in _LIVE:
                    return
                try:
                    self._limit(step)
                except docker.errors.APIError:
                    if tries == _TRIES - 1:
                        raise
                    time.sleep(_TRY_SECONDS)  # it is being started, or has just ended
                    continue
                self._step = step
            return

    def _limit(self, step: str) -> None:
        quota = {"CpuPeriod": _PERIOD, "CpuQuota": int(self._limits.cpus * _PERIOD)}
        client: Any = self._client  # whose own method knows no PidsLimit
        url = client._url("/containers/{0}/update", step)
        client._result(client._post_json(url, data={"PidsLimit": self._limits.processes, **quota}))

    def _size(self) -> int:
        if self._step is None:
            return 0
        found = self._client.containers(filters={"id": self._step}, size=True)
        return max((int(item.get("SizeRootFs") or 0) for item in found), default=0)


def _follow(stream: Iterable[dict[str, Any]], log: BuildLog, watch: _Watch) -> None:
    finished = False
    for message in stream:
        if found := _RUNNING.fullmatch(str(message.get("stream") or "")):
            watch.begin(found[1])
        log.write(str(message.get("stream") or message.get("error") or message.get("status") or ""))
        finished = finished or "aux" in message
        if "error" in message:
            raise log.failed()
    if watch.problem is not None:
        raise watch.problem
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
