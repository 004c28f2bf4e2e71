"""Isolation of builds: their limits, and a network that contains nothing but a proxy.

The steps of a build share the network of a helper container that has only a loopback interface, on which the forwarder
to the proxy listens. So they have no route to this machine, its network or the internet, and never see a proxy
password.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux._core.sandboxes.egress import ANY, Rule, variables
from mleredux._core.sandboxes.egress import SOCKET as PROXY
from mleredux.errors import SandboxError

from mleredux_containers.egress import Egress, configured_rules
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
"""Hosts that every build may reach: package registries."""
_PROCESSES = 1024
_DISK_MB = 40 << 10
_MOST_MEMORY_MB, _LEAST_MEMORY_MB = 16 << 10, 512
_READY_SECONDS = 20
_MIB = 1 << 20


@dataclass(frozen=True)
class BuildLimits:
    """Resources that each step of a build may use.

    Attributes:
        memory: Maximum memory in bytes, including swap.
        cpus: Number of CPUs.
        processes: Maximum number of processes.
        disk: Maximum size of its files in bytes, including those of the base image.
    """

    memory: int
    cpus: float
    processes: int
    disk: int


def build_limits(max_image_mb: int | None) -> BuildLimits:
    """Return limits for this machine: half of its memory and CPUs, and disk space for twice the size of an image."""
    from mleredux._core.sandboxes.slots import machine

    has = machine()
    memory = max(_LEAST_MEMORY_MB, min(_MOST_MEMORY_MB, has.memory_mb // 2))
    disk = 2 * max_image_mb if max_image_mb else _DISK_MB
    return BuildLimits(memory * _MIB, max(1.0, has.cpus / 2), _PROCESSES, disk * _MIB)


@contextlib.contextmanager
def network_of(engine: ImageEngine, log: BuildLog, image: Image | None) -> Iterator[tuple[str | None, Egress | None]]:
    """Run the container whose network the steps of a build share; yield its id and its proxy.

    Args:
        image: The image of that container, which must contain Python. If None, the build gets no network.
    """
    if image is None:
        yield None, None
        return
    hosts = log.request.hosts
    rules = [Rule(ANY)] if hosts is None else [Rule.read(host) for host in hosts]
    # Users can't rebind a registry's name, which may be a mirror in this machine's network.
    rules += [Rule.read(host, private=True) for host in REGISTRIES]
    # The path of TMPDIR may be too long for sockets, or inaccessible to the user of the container.
    with (
        tempfile.TemporaryDirectory(prefix="mleredux-build-", dir="/tmp") as temporary,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(temporary)
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
        stack.callback(egress.stop)
        sidecar = engine.start_sidecar(_sidecar(image, binds, log.seconds_left + 60))
        stack.callback(engine.remove_sidecar, sidecar)
        until = time.monotonic() + _READY_SECONDS
        while not (folder / "ready" / "up").exists():
            if time.monotonic() > until:
                raise SandboxError("The container that provides the network for builds failed to start.")
            time.sleep(0.02)
        yield sidecar, egress


def proxy_arguments() -> dict[str, str]:
    """Return build arguments that contain the address of the proxy."""
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
