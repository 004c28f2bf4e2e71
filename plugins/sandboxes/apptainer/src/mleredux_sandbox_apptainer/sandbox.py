"""The sandbox `apptainer`: containers that follow the container contract, without a daemon and without root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from mleredux.plugin.sandbox import (
    BuildRequest,
    Built,
    Finding,
    Handle,
    Launch,
    Layout,
    attach_launcher,
    start_launcher,
    sweep_launchers,
)
from mleredux_containers import CAPABILITIES, LAYOUT, Bind, FiltersHosts, agent_user, build, container

from mleredux_sandbox_apptainer import engine

_FILES = {"hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n", "resolv.conf": ""}
"""Network configuration that agents see; otherwise Apptainer would reveal the machine's name servers."""


class ApptainerSandbox(FiltersHosts):
    """Implements `mleredux.plugin.sandbox.Sandbox` using the program `apptainer`."""

    id = "apptainer"
    title = "Apptainer containers: no network, no privileges; for clusters"
    capabilities = replace(CAPABILITIES, builds=("python", "npm", "dockerfile", "image"), enforces=())

    def check(self) -> list[Finding]:
        """Check whether containers work on this machine."""
        from mleredux_sandbox_apptainer.doctor import findings

        return findings()

    def build(self, request: BuildRequest) -> Built:
        """Build the agent's image, or find it in the cache."""
        from mleredux_sandbox_apptainer.images import ApptainerImages

        return build(request, ApptainerImages())

    def layout(self, launch: Launch) -> Layout:
        """Return the paths in the agent's container."""
        return LAYOUT

    def start(self, launch: Launch) -> Handle:
        """Start the agent in a new container, under a launcher that survives this program."""
        image = engine.find_image(launch.built.reference)
        # A tmpfs would not count toward the agent's memory, so shared memory is on the run's disk.
        binds = [Bind(_own(launch.scratch_dir / ".shm"), "/dev/shm", writable=True)]
        staging = launch.staging_dir or launch.control_dir
        for name, content in _FILES.items():
            file = staging / name
            file.write_text(content, encoding="utf-8")
            file.chmod(0o644)
            binds.append(Bind(file, f"/etc/{name}"))
        spec = container(
            launch,
            image,
            user=agent_user(),
            cpus=os.cpu_count() or 1,
            listed=engine.list_files,
            binds=binds,
            entries=os.getuid() == 0,  # otherwise, Apptainer adds its user's entries
        )
        assert image is not None  # otherwise, there is no container
        overlay = _own(launch.scratch_dir / ".image") if spec.volumes or not spec.read_only else None
        environment = engine.variables(launch.control_dir, {**image.env, **spec.environment})
        return start_launcher(
            launch,
            engine.exec_command(spec, engine.source_of(image), launch.control_dir, overlay),
            environment,
            in_container=True,
        )

    def attach(self, launch: Launch) -> Handle | None:
        """Return the launch's container, running or ended, if an earlier process started it; else None."""
        return attach_launcher(launch)

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Stop containers of this owner's runs that are no longer alive; return the ids of these runs."""
        return sweep_launchers(owner, alive)


def _own(folder: Path) -> Path:
    """Create a world-writable folder under the agent's; an earlier attempt may have replaced it with a link."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return folder


sandbox = ApptainerSandbox()
