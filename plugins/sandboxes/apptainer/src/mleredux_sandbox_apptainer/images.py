"""Find, fetch and build Apptainer images; each build step runs in a separate container."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mleredux.errors import SandboxError
from mleredux.plugin.files import plain_path, remove_tree
from mleredux_containers import BuildLimits, BuildLog, Container, Image, ImageBuild, agent_user

from mleredux_sandbox_apptainer.engine import ROOT, find_image, images, place, reason, variables_of, write_record
from mleredux_sandbox_apptainer.recipe import Builder
from mleredux_sandbox_apptainer.steps import Steps

_SOURCES = ("docker", "docker-archive", "docker-daemon", "library", "oci", "oci-archive", "oras")
_NO_LIMIT = BuildLimits(memory=1 << 50, cpus=0, processes=1 << 20, disk=1 << 50)


class ApptainerImages:
    """Implements `mleredux_containers.ImageEngine`."""

    id = "apptainer"

    def __init__(self) -> None:
        self._sidecar: Container | None = None

    def find_image(self, name: str) -> Image | None:
        """Return an existing image, or None."""
        return find_image(name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry, or unpack an archive: `docker-archive:FILE`."""
        kind, _, file = name.partition(":")
        source = name if kind in _SOURCES else f"docker://{name}"
        if kind.endswith("-archive"):
            source = f"{kind}:{plain_path(Path(file))}"
        with _new_image(name) as work:
            build = ["apptainer", "--silent", "build", "--fix-perms", "--sandbox", str(work / ROOT), source]
            code, output = Steps(log, _NO_LIMIT, work).run(build, {})
            if code:
                raise SandboxError(reason(output))
            write_record(work, variables_of(work / ROOT))

    def start_sidecar(self, spec: Container) -> str:
        """Record the container without starting it: each step has a separate network with the proxy's socket only."""
        self._sidecar = spec
        next(bind.source for bind in spec.binds if bind.writable).joinpath("up").touch()
        return "steps"

    def remove_sidecar(self, container: str) -> None:
        """Remove the network access of steps."""
        self._sidecar = None

    def build_image(self, build: ImageBuild) -> None:
        """Build an image; stop at its time limit, or when a step writes too much."""
        with _new_image(build.tag) as work:
            steps = Steps(build.log, build.limits, work, self._sidecar if build.sidecar else None)
            Builder(build.plan, build.arguments, build.log, steps, work).build()


@contextlib.contextmanager
def _new_image(name: str) -> Iterator[Path]:
    """Yield a folder for a new image and its record, which becomes the image with that name afterwards."""
    images().mkdir(parents=True, exist_ok=True)
    # Apptainer writes the path of its build into a script.
    home = images() if plain_path(images()) == images() else Path("/var/tmp")
    work = Path(tempfile.mkdtemp(prefix=".making-", dir=home))
    try:
        work.chmod(0o755)
        if os.getuid() == 0:
            os.chown(work, *agent_user())
        yield work
        # If this fails, another machine that shares this folder has built the same image in the meantime.
        subprocess.run(["mv", "-T", work, place(name)], capture_output=True)
    finally:
        remove_tree(work)
