"""What bounds a build: its limits, and a network that is nothing but a proxy.

The steps of a build share the network of a container of ours without any interface but loopback, in which the forwarder
to the proxy listens. So they have no route to this machine, its neighbors or the internet, and no password of a proxy.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux._core.sandboxes.egress import ANY, Egress, Rule, configured_rules, variables
from mleredux._core.sandboxes.egress import SOCKET as PROXY
from mleredux.errors import SandboxError

from mleredux_containers.folders import INSIDE, SOCKET, UNPRIVILEGED, Bind, write_inside
from mleredux_containers.profile import Container, Image

if TYPE_CHECKING:
    from mleredux_containers.images import BuildLog, ImageEngine

REGISTRIES = (
    *("pypi.org", "files.pythonhosted.org", "download.pytorch.org", "registry.npmjs.org", "nodejs.org"),
    *("deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
    *("dl-cdn.alpinelinux.org", "conda.anaconda.org", "repo.anaconda.com", "cran.r-project.org"),
    *("proxy.golang.org", "sum.golang.org", "crates.io", "index.crates.io", "static.crates.io"),
)
"""What every build may reach: registries of packages."""
_PROCESSES = 1024
_DISK_MB = 40 << 10
_MOST_MEMORY_MB, _LEAST_MEMORY_MB = 16 << 10, 512
_READY_SECONDS = 20
_MIB = 1 << 20


@dataclass(frozen=True)
class BuildLimits:
    """What the steps of a build may use, each.

    Attributes:
        memory: Bytes, swap included.
        cpus: How many.
        processes: The most there may be.
        disk: Bytes of its files, those of the image below included.
    """

    memory: int
    cpus: float
    processes: int
    disk: int


def build_limits(max_image_mb: int | None) -> BuildLimits:
    """Limits for this machine: half of its memory and CPUs; of the disk, room for an image and as much again."""
    from mleredux._core.sandboxes.slots import machine

    has = machine()
    memory = max(_LEAST_MEMORY_MB, min(_MOST_MEMORY_MB, has.memory_mb // 2))
    disk = 2 * max_image_mb if max_image_mb else _DISK_MB
    return BuildLimits(memory * _MIB, max(1.0, has.cpus / 2), _PROCESSES, disk * _MIB)


@contextlib.contextmanager
def way_out(engine: ImageEngine, log: BuildLog, image: Image | None) -> Iterator[tuple[str | None, Egress | None]]:
    """The container whose network a build's steps share, and its proxy.

    Args:
        image: What that container is made of; it needs Python. None: the build gets no network.
    """
    if image is None:
        yield None, None
        return
    hosts = log.request.hosts
    rules = [Rule(ANY)] if hosts is None else [Rule.read(host) for host in hosts]
    # A registry's name is nobody's to rebind; it may be a mirror in this machine's network.
    rules += [Rule.read(host, private=True) for host in REGISTRIES]
    # TMPDIR may have a longer path than sockets, and be closed to the user who builds.
    with tempfile.TemporaryDirectory(prefix="mleredux-build-", dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o711)
        for name, mode in (("socket", 0o711), ("ready", 0o777)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        binds = (
            Bind(write_inside(folder), INSIDE),
            Bind(folder / "socket", SOCKET),
            Bind(folder / "ready", "/output", writable=True),
        )
        egress = Egress(folder / "socket" / PROXY, [*rules, *configured_rules()], "build", log.request.record)
        egress.start()
        sidecar = None
        try:
            sidecar = engine.start_sidecar(_sidecar(image, binds, log.seconds_left + 60))
            until = time.monotonic() + _READY_SECONDS
            while not (folder / "ready" / "up").exists():
                if time.monotonic() > until:
                    raise SandboxError("The container that gives builds their network does not start.")
                time.sleep(0.02)
            yield sidecar, egress
        finally:
            if sidecar is not None:
                engine.remove_sidecar(sidecar)
            egress.stop()


def proxy_arguments() -> dict[str, str]:
    """Build arguments by which the steps find the proxy."""
    return {name: value for name, value in variables(local=False).items() if "http" in name.lower()}


def _sidecar(image: Image, binds: tuple[Bind, ...], seconds: float) -> Container:
    return Container(
        image=image.id,
        entrypoint=("/bin/sh", f"{INSIDE}/entrypoint.sh", "-", "-", PROXY),
        command=("/bin/sh", "-c", f": >/output/up; exec sleep {seconds:.0f}"),
        user=(UNPRIVILEGED, UNPRIVILEGED),
        labels={"mleredux.build": "network"},
        binds=binds,
    )
