"""Run each step of a build in a separate container, whose limits apply from the first instruction.

The engine's builder can't limit processes or disk. So RUN instructions are executed in our own containers, which are
then committed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux_containers import (
    DOWNLOADS,
    DOWNLOADS_VARIABLE,
    BuildDisk,
    BuildLimits,
    BuildLog,
    Watch,
    downloads,
    downloads_size,
)

from mleredux_sandbox_docker.engine import ignore_missing

if TYPE_CHECKING:
    from docker import APIClient

STEP_LABEL = "mleredux.step"
"""Label with the hash of the step that created an image, which serves as a cache."""
_NAME = "mleredux-step-"
_SHARED_MEMORY = 64 << 20
_ENGINES_FILES = {"hosts": "127.0.0.1 localhost\n", "resolv.conf": "", "hostname": "build\n"}
"""Files that the engine would mount into a container from its own folder, which has no size limit."""


@dataclass(frozen=True)
class Bounds:
    """Settings of all steps of a build.

    Attributes:
        log: The log of the build.
        watch: Stops steps at their limits.
        limits: The limits of each step.
        network: The network mode, in the engine's syntax.
        disk: The disk for files of steps; None for the engine's disk, measured at most every two seconds.
    """

    log: BuildLog
    watch: Watch
    limits: BuildLimits
    network: str
    disk: BuildDisk | None


def run_step(
    client: APIClient, image: str, command: str, values: dict[str, str], bounds: Bounds, *, shared: bool
) -> str:
    """Run a step on an image.

    Args:
        client: The client of the engine.
        image: The image to start with.
        command: The arguments of RUN.
        values: The build arguments, overridden by the image's variables.
        bounds: The settings of the build's steps.
        shared: Whether to mount the download cache that builds share.

    Returns:
        The id of the resulting image.

    Raises:
        BuildFailed: The step failed, or was stopped at a limit.
    """
    image_record = client.inspect_image(image)  # type: ignore[no-untyped-call]
    config = image_record["Config"]
    own = {item.partition("=")[0] for item in config.get("Env") or ()}
    values = {name: value for name, value in sorted(values.items()) if name not in own}
    key = hashlib.sha256(json.dumps([image_record["Id"], command, values]).encode()).hexdigest()
    for known in client.images(all=True, filters={"label": f"{STEP_LABEL}={key}"}):
        if known.get("ParentId") == image_record["Id"]:  # rather than an image that the builder derived from it
            bounds.log.write(" ---> Using cache")
            return str(known["Id"])
    arguments = _arguments(command, config)
    cache = downloads() if shared else None
    if cache is not None:
        values = {**values, DOWNLOADS_VARIABLE: f"--cache-dir={DOWNLOADS}"}
    if values:  # not as variables of the container, which the resulting image would contain
        arguments = ["env", *(f"{name}={value}" for name, value in values.items()), *arguments]
    before = downloads_size(cache) if cache else 0
    with _container(client, image_record, arguments, bounds, cache) as (container, written):
        watch = bounds.watch
        watch.size = lambda: (written(container) if written else 0) + (downloads_size(cache) - before if cache else 0)
        watch.stop = lambda: _kill(client, container)
        try:
            _run(client, container, bounds)
        finally:
            watch.stop, watch.size = (lambda: None), (lambda: 0)
        committed = client.commit(
            container,
            pause=False,
            conf={
                **config,
                "Entrypoint": config.get("Entrypoint") or [],
                "Cmd": config.get("Cmd") or [],
                "Labels": {**(config.get("Labels") or {}), STEP_LABEL: key},
            },
        )
    return str(committed["Id"])


def sweep_steps(client: APIClient) -> None:
    """Remove the containers of builds on this machine whose program was killed."""
    for item in client.containers(all=True, filters={"name": f"{_NAME}{_machine()}-"}):
        pid = item["Names"][0].split("-")[-2]
        if not Path("/proc", pid).exists():
            _remove(client, item["Id"])


def _arguments(command: str, config: dict[str, Any]) -> list[str]:
    """Return the command line of a RUN instruction: a JSON list unchanged, anything else for the image's shell."""
    with contextlib.suppress(ValueError):
        words = json.loads(command)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return words
    return [*(config.get("Shell") or ("/bin/sh", "-c")), command]


@contextlib.contextmanager
def _container(
    client: APIClient, image: dict[str, Any], arguments: Sequence[str], bounds: Bounds, cache: Path | None
) -> Iterator[tuple[str, Callable[[str], int] | None]]:
    """Create a container; yield its id, and a function that measures its size if its disk is not limited."""
    from docker.types import LogConfig, Mount, Ulimit

    limits, disk = bounds.limits, bounds.disk
    mounts = [Mount(DOWNLOADS, str(cache), type="bind")] if cache else []
    if disk is not None:
        for name, text in _ENGINES_FILES.items():
            (disk.path / name).write_text(text)
            mounts.append(Mount(f"/etc/{name}", str(disk.path / name), type="bind"))
        for number, volume in enumerate(sorted(image["Config"].get("Volumes") or ())):
            (disk.path / f"volume-{number}").mkdir(exist_ok=True)
            mounts.append(Mount(volume, str(disk.path / f"volume-{number}"), type="bind"))
    host = client.create_host_config(
        mounts=mounts,
        network_mode=bounds.network,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        shm_size=_SHARED_MEMORY,
        nano_cpus=int(limits.cpus * 1e9),
        pids_limit=limits.processes,
        ulimits=[Ulimit(name="fsize", soft=limits.disk, hard=limits.disk), Ulimit(name="core", soft=0, hard=0)],
        log_config=LogConfig(type="none"),
    )
    created: str = client.create_container(
        image["Id"],
        entrypoint=list(arguments),
        name=f"{_NAME}{_machine()}-{os.getpid()}-{os.urandom(6).hex()}",
        use_config_proxy=False,
        host_config=host,
    )["Id"]
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, client, created)
        graph = client.inspect_container(created).get("GraphDriver") or {}
        upper = Path(str((graph.get("Data") or {}).get("UpperDir") or "/nowhere"))
        bounded = False
        if disk is not None and graph.get("Name") == "overlay2" and upper.is_dir():
            with contextlib.suppress(OSError):
                stack.enter_context(disk.below(upper.parent))
                bounded = True
        stack.callback(_kill, client, created)
        yield created, None if bounded else lambda container: _written(client, container)


def _run(client: APIClient, container: str, bounds: Bounds) -> None:
    log, output = bounds.log, client.attach(container, stdout=True, stderr=True, stream=True)
    client.start(container)
    rest = b""
    for part in output:
        *lines, rest = (rest + part).split(b"\n")
        log.write(b"\n".join(lines).decode("utf-8", "replace"))
        rest = rest[-4096:]
    log.write(rest.decode("utf-8", "replace"))
    code = client.wait(container)["StatusCode"]
    bounds.watch.check()
    if code:
        if bounds.disk is not None and bounds.disk.full():
            raise log.too_large(bounds.limits.disk)
        log.write(f"The command returned a non-zero code: {code}")
        raise log.failed()


def _written(client: APIClient, container: str) -> int:
    records = client.containers(all=True, filters={"id": container}, size=True)
    return max((int(item.get("SizeRw") or 0) for item in records), default=0)


def _kill(client: APIClient, container: str) -> None:
    with ignore_missing():
        client.kill(container)


def _remove(client: APIClient, container: str) -> None:
    with ignore_missing():
        client.remove_container(container, force=True, v=True)


def _machine() -> str:
    return hashlib.sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes()).hexdigest()[:8]
