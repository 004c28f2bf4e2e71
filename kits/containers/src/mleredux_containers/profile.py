"""Translate a launch into a container: all limits and hardening of an agent's container, independent of the engine."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mleredux._core.sandboxes.variables import gpu_environment
from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Capabilities, Exit, Launch, Layout

from mleredux_containers.folders import INSIDE, Bind, prepare_folders, user_entries, withheld_binds, written_binds

CAPABILITIES = Capabilities(
    isolated=True,
    networks=("none", "gateway", "open", "hosts"),
    builds=("python", "debian", "npm", "dockerfile", "image"),
    gpus=True,
    writable_root=True,
    enforces=("cpus", "memory", "processes"),
)
"""Capabilities of a container sandbox whose engine enforces all limits of a container."""
LAYOUT = Layout(
    task="/task",
    data="/task/data",
    output="/output",
    scratch="/tmp",
    validate_url="http://localhost:5000/validate",
    gateway_url="http://localhost:4000",
)
"""Paths in an agent's container."""
OWN_PROCESSES = 2
"""Processes that do not count as the agent's: init, and the forwarder to validation and gateway."""
RUN_LABEL = "mleredux.run"
"""Label with the id of the run that a container or network was created for."""
OWNER_LABEL = "mleredux.owner"
"""Label with the identity of the store that the run belongs to."""
_OPEN_FILES = 65536
_MIB = 1 << 20


@dataclass(frozen=True)
class Image:
    """An image that an engine has.

    Attributes:
        id: The identity of its content.
        tags: Its names.
        env: Variables that it sets.
        command: Its entry point and command.
        size_mb: Its size in MB.
        volumes: Paths that it declares as volumes.
        layers: The engine's folders of its layers, the uppermost first; empty if the engine does not report them.
    """

    id: str
    tags: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    size_mb: int = 0
    volumes: tuple[str, ...] = ()
    layers: tuple[Path, ...] = ()

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Image:
        """Return an image from its record in the format of Docker and Podman."""
        config = record.get("Config") or {}
        layers = (record.get("GraphDriver") or {}).get("Data") or {}
        return cls(
            id=str(record["Id"]),
            tags=tuple(record.get("RepoTags") or ()),
            env=dict(item.partition("=")[::2] for item in config.get("Env") or ()),
            command=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
            size_mb=int(record.get("Size") or 0) >> 20,
            volumes=tuple(sorted(config.get("Volumes") or ())),
            layers=tuple(
                Path(folder)
                for name in ("UpperDir", "LowerDir")
                for folder in str(layers.get(name) or "").split(":")
                if folder
            ),
        )

    @property
    def agent_dir(self) -> str | None:
        """The agent's folder in an image made for MLE-bench, as set in the image's environment."""
        folder = self.env.get("AGENT_DIR", "")
        return folder if folder.startswith("/") and folder.strip("/") else None


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container that an engine must start. In addition, each adapter disables the network (all access is through
    sockets), drops all capabilities, forbids new privileges, keeps the engine's system call filter, adds an init
    and a private IPC namespace, disables core dumps, health checks and restarts, and never passes on the user's proxy.
    The defaults suffice for helper containers, such as the one that provides the network of a build; the values for an
    agent come from its launch.

    Attributes:
        image: Id of the image.
        entrypoint: Program and first arguments, which replace those of the image.
        command: Further arguments.
        environment: Variables in addition to the image's.
        user: User and group id.
        labels: Labels that identify the container later.
        working_dir: The working directory; None: that of the image.
        binds: Mounted host paths.
        volumes: Paths that become writable and contain the image's files, deleted with the container.
        memory: Memory limit in bytes, including swap.
        shared_memory: Share of the memory for `/dev/shm` in bytes.
        cpus: Number of CPUs.
        processes: Maximum number of processes.
        file_size: Maximum size of a file in bytes.
        open_files: Maximum number of open files.
        read_only: Whether the root file system is read-only.
        gpus: Ids of devices.
    """

    image: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    user: tuple[int, int]
    labels: dict[str, str] = field(default_factory=dict)
    working_dir: str | None = "/"
    binds: tuple[Bind, ...] = ()
    volumes: tuple[str, ...] = ()
    memory: int = 256 * _MIB
    shared_memory: int = _MIB
    cpus: float = 1
    processes: int = 64
    file_size: int = _MIB
    open_files: int = 4096
    read_only: bool = True
    gpus: tuple[str, ...] = ()


def container(
    launch: Launch,
    image: Image | None,
    *,
    user: tuple[int, int],
    cpus: int,
    listed: Callable[[Image], str],
    binds: Sequence[Bind] = (),
    entries: bool = True,
) -> Container:
    """Return the container of a launch, and make the launch's folders usable by the agent's user.

    Args:
        launch: The launch.
        image: The agent's image; None if the engine no longer has it.
        user: User and group id of the agent.
        cpus: CPUs of the engine's machine.
        listed: Returns the output of `FIND` in a container of the image, used to find known answers if the image does
            not report its layers.
        binds: Additional mounts.
        entries: Whether to add the agent's user to the image's own users.

    Raises:
        SandboxError: The image is gone, its user can't read the task, or there is no command.
    """
    if image is None:
        raise SandboxError(f"The agent's image {launch.built.reference} no longer exists.", hint="Start the run again.")
    folders = prepare_folders(launch, user)
    users = user_entries(image.layers, user, launch.staging_dir or launch.control_dir) if entries else []
    withheld = withheld_binds(launch, image.id, image.layers, partial(listed, image))
    limits = launch.limits
    written = written_binds(launch, image.layers, image.volumes, image.agent_dir)
    places = (launch.validate_socket, launch.gateway_socket, launch.proxy_socket)
    sockets = [place.name if place else "-" for place in places]
    return Container(
        image=image.id,
        entrypoint=("/bin/sh", f"{INSIDE}/entrypoint.sh", *sockets),
        command=command(launch, image),
        environment=environment(launch, image),
        user=user,
        labels=labels(launch.run_id, launch.owner),
        working_dir=LAYOUT.output if launch.command else None,
        binds=(*folders, *users, *binds, *(written or ()), *withheld),
        # It starts with the image's own files: an agent may write next to its program, as in MLE-bench.
        volumes=(image.agent_dir,) if image.agent_dir and written is None else (),
        memory=limits.memory_mb * _MIB,
        shared_memory=limits.memory_mb * _MIB // 2,
        cpus=min(limits.cpus, cpus),
        # One more than the agent may have, so that exceeding the limit can be detected.
        processes=limits.processes + OWN_PROCESSES + 1,
        file_size=limits.disk_mb * _MIB,
        # An engine without CAP_SYS_RESOURCE can't set a higher limit than its own, which usually equals ours.
        open_files=min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        read_only=written is not None or not launch.agent.build.writable_root,
        gpus=launch.gpu_ids,
    )


def environment(launch: Launch, image: Image) -> dict[str, str]:
    """Return the launch's variables, and those that agents written for MLE-bench expect."""
    variables = {
        "HOME": LAYOUT.scratch,
        "USER": "agent",
        "LOGNAME": "agent",
        "COMPETITION_ID": launch.env.get("MLEREDUX_TASK", ""),
        "SUBMISSION_DIR": "/home/submission",
        "LOGS_DIR": "/home/logs",
        "CODE_DIR": "/home/code",
        "AGENT_DIR": image.agent_dir or "/home/agent",
    }
    if "NVIDIA_VISIBLE_DEVICES" in image.env and not launch.gpu_ids:
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"  # CUDA images request all devices
    return {**variables, **launch.env, **(gpu_environment(launch.gpu_ids, assigned=True) if launch.gpu_ids else {})}


def command(launch: Launch, image: Image) -> tuple[str, ...]:
    """Return the container's command: that of the launch, else an MLE-bench agent's `start.sh`, else that of the image.

    Raises:
        SandboxError: There is no command.
    """
    if launch.command:
        return launch.command
    if image.agent_dir:
        return ("bash", f"{image.agent_dir}/start.sh")
    if not image.command:
        raise SandboxError(
            f"Neither agent {launch.agent.id} nor its image defines a command.",
            hint="Set the agent's `command`.",
        )
    return image.command


def exit_of(state: dict[str, Any]) -> Exit | None:
    """Return how a container ended, from the `State` that Docker and Podman report; None while it runs."""
    if state["Status"] not in ("exited", "dead"):
        return None
    code = int(state["ExitCode"])
    out_of_memory = bool(state.get("OOMKilled")) and code != 0
    # Like a shell, init exits with 128 + N if signal N ended the agent.
    if 128 < code <= 128 + signal.NSIG:
        return Exit(code=None, signal=code - 128, out_of_memory=out_of_memory)
    return Exit(code=code, out_of_memory=out_of_memory)


def labels(run_id: str, owner: str) -> dict[str, str]:
    """Return the labels of everything that is created for a run."""
    return {RUN_LABEL: run_id, OWNER_LABEL: owner}
