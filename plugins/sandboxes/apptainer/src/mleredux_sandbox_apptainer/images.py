"""Apptainer's images: found, fetched, and built step by step, each in a container of its own."""

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
        self._way_out: Container | None = None

    def find_image(self, name: str) -> Image | None:
        """An image that is there."""
        return find_image(name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry, or unpack an archive: `docker-archive:FILE`."""
        kind, _, file = name.partition(":")
        source = name if kind in _SOURCES else f"docker://{name}"
        if kind.endswith("-archive"):
            source = f"{kind}:{plain_path(Path(file))}"
        with _new_image(name) as work:
            build = ["apptainer", "--silent", "build", "--fix-perms", "--sandbox", str(work / ROOT), source]
            code, said = Steps(log, _NO_LIMIT, work).run(build, {})
            if code:
                raise SandboxError(reason(said))
            write_record(work, variables_of(work / ROOT))

    def start_sidecar(self, made: Container) -> str:
        """Nothing runs between two steps: each has a network of its own, whose way out is the proxy's socket."""
        self._way_out = made
        next(bind.source for bind in made.binds if bind.writable).joinpath("up").touch()
        return "steps"

    def remove_sidecar(self, container: str) -> None:
        """Steps have no way out any more."""
        self._way_out = None

    def build_image(self, build: ImageBuild) -> None:
        """Build an image; ended at its time limit, or when a step writes too much."""
        with _new_image(build.tag) as work:
            steps = Steps(build.log, build.limits, work, self._way_out if build.sidecar else None)
            Builder(build.plan, build.arguments, build.log, steps, work).build()


@contextlib.contextmanager
def _new_image(name: str) -> Iterator[Path]:
    """A folder in which an image is made with its record: it becomes the image of that name."""
    images().mkdir(parents=True, exist_ok=True)
    # Apptainer puts the path of what it has built into a script.
    home = images() if plain_path(images()) == images() else Path("/var/tmp")
    work = Path(tempfile.mkdtemp(prefix=".making-", dir=home))
    try:
        work.chmod(0o755)
        if os.getuid() == 0:
            os.chown(work, *agent_user())
        yield work
        # If this fails, another machine that sees this folder has made the same meanwhile.
        subprocess.run(["mv", "-T", work, place(name)], capture_output=True)
    finally:
        remove_tree(work)
