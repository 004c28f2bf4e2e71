"""The sandbox `podman`: containers that follow the container contract, hardened and limited, without a daemon."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError, file_errors
from mleredux.plugin.sandbox import BuildRequest, Built, Finding, Handle, Launch, Layout
from mleredux_containers import (
    CAPABILITIES,
    LAYOUT,
    OWNER_LABEL,
    RUN_LABEL,
    FiltersHosts,
    agent_user,
    build,
    container,
    labels,
)

from mleredux_sandbox_podman import engine
from mleredux_sandbox_podman.handle import OUT_OF_MEMORY, PodmanHandle, wait_for_log

_START_SECONDS = 30
_WRITER = "cat 2>/dev/null; exec cat >/dev/null"
"""Writes the log, and continues reading if the disk is full: otherwise the agent would be killed by its next output."""


class PodmanSandbox(FiltersHosts):
    """Implements `mleredux.plugin.sandbox.Sandbox` using the program `podman`."""

    id = "podman"
    title = "Podman containers: no network, no privileges, limits on everything"
    capabilities = CAPABILITIES

    def check(self) -> list[Finding]:
        """Check whether containers work on this machine."""
        from mleredux_sandbox_podman.doctor import findings

        return findings()

    def build(self, request: BuildRequest) -> Built:
        """Build the agent's image, or find it in the cache."""
        from mleredux_sandbox_podman.images import PodmanImages

        return build(request, PodmanImages())

    def discard(self, identity: str) -> None:
        """Remove an agent's image, unless a container or another image needs it."""
        with contextlib.suppress(SandboxError):
            engine.call("The image can't be removed", "rmi", identity, absent=True)

    def layout(self, launch: Launch) -> Layout:
        """Return the paths in the agent's container."""
        return LAYOUT

    def start(self, launch: Launch) -> Handle:
        """Start the agent in a new container."""
        user = agent_user(rootless=os.getuid() != 0)
        spec = container(
            launch,
            engine.find_image(launch.built.reference),
            user=user,
            cpus=os.cpu_count() or 1,
            listed=lambda image: engine.list_files(image.id, user),
        )
        cid_file, env_file = launch.control_dir / "container.id", launch.control_dir / "container.env"
        for file in (cid_file, launch.control_dir / OUT_OF_MEMORY):
            file.unlink(missing_ok=True)
        try:
            _run(engine.command(*engine.run_options(spec, cid_file, env_file)), launch.control_dir, launch.log)
            return PodmanHandle(cid_file.read_text().strip(), launch.control_dir, launch.log)
        except BaseException:
            engine.remove(cid_file.read_text().strip() if cid_file.exists() else None)
            raise
        finally:
            env_file.unlink(missing_ok=True)

    def attach(self, launch: Launch) -> Handle | None:
        """Return the launch's container, running or ended, if an earlier process started it; else None."""
        adopted: Handle | None = None
        for item in sorted(_containers(labels(launch.run_id, launch.owner)), key=lambda item: -item["Created"]):
            if adopted is None and item["State"] in ("running", "paused", "exited", "stopped"):
                adopted = PodmanHandle(item["Id"], launch.control_dir, launch.log)
            else:
                engine.remove(item["Id"])  # created, but never started
        return adopted

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Remove containers of this owner's runs that are no longer alive; return the ids of these runs."""
        removed: dict[str, None] = {}
        for item in _containers({OWNER_LABEL: owner}):
            run_id = (item["Labels"] or {}).get(RUN_LABEL, "")
            if not alive(run_id):
                engine.remove(item["Id"])
                removed[run_id] = None
        return list(removed)


def _run(command: list[str], folder: Path, log: Path) -> None:
    """Start a container whose output is written to the log by a program that outlives this one.

    The log stays locked until that program has written everything.

    Raises:
        SandboxError: The container does not start; the log is unchanged.
    """
    wait_for_log(log, _START_SECONDS)
    with log.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        offset = os.fstat(file.fileno()).st_size
        reading, writing = os.pipe()
        try:
            with file_errors(SandboxError, "The container can't be started"):
                writer = subprocess.Popen(["sh", "-c", _WRITER], stdin=reading, stdout=file, start_new_session=True)
                env, null = engine.getenv(), subprocess.DEVNULL
                started = subprocess.run(command, cwd=folder, stdin=null, stdout=writing, stderr=writing, env=env)
        finally:
            os.close(reading)
            os.close(writing)
        if started.returncode == 0:
            return
    writer.wait(_START_SECONDS)
    with log.open("rb+") as file:
        file.seek(offset)
        output = file.read().decode("utf-8", "replace")
        file.truncate(offset)
    raise engine.failure("The container can't be started", engine.reason(output))


def _containers(wanted: dict[str, str]) -> list[dict[str, Any]]:
    filters = [f"--filter=label={name}={value}" for name, value in wanted.items()]
    return engine.records("Containers can't be listed", "ps", "--all", "--no-trunc", *filters, "--format=json")


sandbox = PodmanSandbox()
