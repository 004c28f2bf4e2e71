"""The sandbox `docker`: containers that follow the container contract, hardened and limited."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import BuildRequest, Built, Finding, Handle, Launch, Layout
from mleredux_containers import CAPABILITIES, LAYOUT, OWNER_LABEL, RUN_LABEL, FiltersHosts, agent_user, build
from mleredux_containers import container as make_container

from mleredux_sandbox_docker import container
from mleredux_sandbox_docker.engine import connect, engine_errors, find_image, list_files, security_options

RUNTIME_VARIABLE = "MLEREDUX_DOCKER_RUNTIME"
_START_HINT = "`mleredux doctor` checks the engine; its log has more details (`journalctl -u docker`)."


class DockerSandbox(FiltersHosts):
    """Implements `mleredux.plugin.sandbox.Sandbox` using a Docker engine.

    Args:
        runtime: The OCI runtime (`runsc` for gVisor, `sysbox-runc`); by default that of `MLEREDUX_DOCKER_RUNTIME`, else
            the engine's default.
    """

    id = "docker"
    title = "Containers: no network, no privileges, limits on everything"
    capabilities = CAPABILITIES

    def __init__(self, runtime: str | None = None) -> None:
        self._runtime = runtime

    @property
    def runtime(self) -> str | None:
        """The requested OCI runtime; None for the engine's default."""
        return self._runtime or os.environ.get(RUNTIME_VARIABLE) or None

    def check(self) -> list[Finding]:
        """Check whether containers work on this machine."""
        from mleredux_sandbox_docker.doctor import findings

        return findings(self.runtime)

    def build(self, request: BuildRequest) -> Built:
        """Build the agent's image, or find it in the engine."""
        from mleredux_sandbox_docker.building import DockerImages

        with contextlib.closing(connect()) as client, engine_errors("The agent's image can't be created"):
            _require_limits(client.info())
            return build(request, DockerImages(client))

    def discard(self, identity: str) -> None:
        """Remove an agent's image, unless a container or another image needs it."""
        with contextlib.suppress(SandboxError), engine_errors("The image can't be removed"):
            connect().remove_image(identity)

    def layout(self, launch: Launch) -> Layout:
        """Return the paths in the agent's container."""
        return LAYOUT

    def start(self, launch: Launch) -> Handle:
        """Start the agent in a new container."""
        from mleredux_sandbox_docker.handle import DockerHandle, note, remove

        client = connect()
        with engine_errors("The container can't be prepared", hint=_START_HINT):
            image = find_image(client, launch.built.reference)
            info = client.info()
        _require_limits(info)
        options = security_options(info)
        user = agent_user(rootless="rootless" in options)
        offset = launch.log.stat().st_size if launch.log.exists() else 0
        created: str | None = None
        try:
            with engine_errors("The container can't be started", hint=_START_HINT):
                declared = make_container(
                    launch,
                    image,
                    user=user,
                    cpus=int(info["NCPU"]),
                    listed=lambda image: list_files(client, image.id, user),
                )
                settings = container.settings(declared, runtime=self.runtime, userns_remapped="userns" in options)
                settings["host_config"] = client.create_host_config(**settings["host_config"])
                created = client.create_container(**settings)["Id"]
                note(container.control_file(launch.control_dir), str(created), offset)
                client.start(created)
            noted = container.log_note(launch.control_dir)
            return DockerHandle(client, str(created), launch.log, offset, noted)
        except BaseException:
            # A container that can't be removed now is removed later by its labels.
            with contextlib.suppress(SandboxError):
                remove(client, created)
            raise

    def attach(self, launch: Launch) -> Handle | None:
        """Return the launch's container, running or ended, if an earlier process started it; else None."""
        from mleredux_sandbox_docker.handle import DockerHandle, remove, stored_offset

        client = connect()
        with engine_errors("The run's container can't be looked up"):
            wanted = [f"{RUN_LABEL}={launch.run_id}", f"{OWNER_LABEL}={launch.owner}"]
            containers: list[dict[str, Any]] = client.containers(all=True, filters={"label": wanted})
        containers.sort(key=lambda item: int(item["Created"]), reverse=True)
        adopted: Handle | None = None
        for item in containers:
            if adopted is None and item["State"] in ("running", "paused", "exited", "dead"):
                offset = stored_offset(container.control_file(launch.control_dir), item["Id"])
                noted = container.log_note(launch.control_dir)
                adopted = DockerHandle(client, item["Id"], launch.log, offset, noted)
            else:
                remove(client, item["Id"])  # created, but never started
        if adopted is None:
            client.close()
        return adopted

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Remove containers of this owner's runs that are no longer alive; return the ids of these runs."""
        from mleredux_sandbox_docker.handle import remove

        removed: dict[str, None] = {}
        with (
            contextlib.closing(connect()) as client,
            engine_errors("Containers that were left behind can't be removed"),
        ):
            wanted = {"label": f"{OWNER_LABEL}={owner}"}
            for item in client.containers(all=True, filters=wanted):
                run_id = item["Labels"].get(RUN_LABEL, "")
                if not alive(run_id):
                    remove(client, item["Id"])
                    removed[run_id] = None
        return list(removed)


def _require_limits(info: dict[str, Any]) -> None:
    """Refuse an engine without control groups, which reports the memory of the whole machine as that of a container.

    Raises:
        SandboxError: The engine is rootless, and control groups have version 1 or are not delegated.
    """
    if info.get("CgroupDriver") == "none":
        raise SandboxError(
            "The Docker engine has no control groups, so it can't limit an agent's memory, CPUs and processes.",
            hint="A rootless engine needs control groups of version 2 with delegation.",
        )


sandbox = DockerSandbox()
