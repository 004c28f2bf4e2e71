"""A launch as a container: every limit and hardening of an agent's container, in one place, in no engine's words."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mleredux._core.sandboxes.gpus import gpu_environment
from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Capabilities, Exit, Launch, Layout

from mleredux_containers.folders import INSIDE, Bind, prepare_folders, user_entries, written_binds
from mleredux_containers.withheld import withheld_binds

CAPABILITIES = Capabilities(
    isolated=True,
    networks=("none", "gateway", "open", "hosts"),
    builds=("python", "debian", "npm", "dockerfile", "image"),
    gpus=True,
    writable_root=True,
    enforces=("cpus", "memory", "processes"),
)
"""What a sandbox of containers offers, if its engine limits all that a container is given."""
LAYOUT = Layout(
    task="/task",
    data="/task/data",
    output="/output",
    scratch="/tmp",
    validate_url="http://localhost:5000/validate",
    gateway_url="http://localhost:4000",
)
"""Where an agent finds things in its container."""
OWN_PROCESSES = 2
"""init, and the forwarder to validation and gateway."""
RUN_LABEL = "mleredux.run"
"""Label with the id of the run that a container or network was made for."""
OWNER_LABEL = "mleredux.owner"
"""Label with the identity of the store that the run belongs to."""
_OPEN_FILES = 65536
_MIB = 1 << 20


@dataclass(frozen=True)
class Image:
    """An image that an engine has.

    Attributes:
        id: What it is, by content.
        tags: Its names.
        env: Variables that it sets.
        command: Its entry point and command.
        size_mb: Its size in MB.
        volumes: Paths that it declares as volumes.
        layers: The engine's folders of its layers, the uppermost first; none where the engine tells none.
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
        """Return an image as Docker and Podman describe it."""
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
        """The agent's folder in an image made for MLE-bench, which such an image names in its environment."""
        folder = self.env.get("AGENT_DIR", "")
        return folder if folder.startswith("/") and folder.strip("/") else None


@dataclass(frozen=True, kw_only=True)
class Container:
    """What an engine must start. Beyond what is here, each adapter gives no network (what may be reached comes through
    sockets), drops all capabilities, forbids new privileges, keeps the engine's filter of system calls, gives an init
    and a private IPC namespace, disables core dumps, health checks and restarts, and passes on no proxy of the user's.
    The defaults suffice for helpers such as the network of a build; an agent's come from its launch.

    Attributes:
        image: Id of the image.
        entrypoint: Program and first arguments, in place of the image's.
        command: Further arguments.
        environment: Variables beside the image's.
        user: User and group id.
        labels: By which it is found again.
        working_dir: None: the image's.
        binds: Host paths that are mounted.
        volumes: Paths that become writable with the image's own files in them, gone with the container.
        memory: Bytes, swap included.
        shared_memory: Bytes of it for `/dev/shm`.
        cpus: How many.
        processes: The most there may be.
        file_size: The most bytes of one file.
        open_files: The most there may be.
        read_only: Whether the root file system can't be written.
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
    """Return the container of a launch, whose folders become usable by the agent's user.

    Args:
        launch: What to start.
        image: The agent's image; None where the engine does not have it any more.
        user: User and group id of the agent.
        cpus: CPUs of the engine's machine.
        listed: Returns the output of `FIND` in a container of the image, in which known answers are looked for if the
            image does not tell its layers.
        binds: What else is mounted.
        entries: Whether to add the agent's user to the image's own users.

    Raises:
        SandboxError: The image is gone, its user could not read the task, or nothing names a command.
    """
    if image is None:
        raise SandboxError(
            f"The agent's image {launch.built.reference} is not there any more.", hint="Start the run again."
        )
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
        # It starts with the image's own files: an agent may write beside its program, as in MLE-bench.
        volumes=(image.agent_dir,) if image.agent_dir and written is None else (),
        memory=limits.memory_mb * _MIB,
        shared_memory=limits.memory_mb * _MIB // 2,
        cpus=min(limits.cpus, cpus),
        # One more than the agent may have, so that it can be seen to go beyond its limit.
        processes=limits.processes + OWN_PROCESSES + 1,
        file_size=limits.disk_mb * _MIB,
        # An engine without CAP_SYS_RESOURCE can't give more than it has; its limit is mostly the same as ours.
        open_files=min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        read_only=written is not None or not launch.agent.build.writable_root,
        gpus=launch.gpu_ids,
    )


def environment(launch: Launch, image: Image) -> dict[str, str]:
    """The launch's variables, and those by which an agent made for MLE-bench finds its way."""
    made = {
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
        made["NVIDIA_VISIBLE_DEVICES"] = "void"  # images of CUDA ask for all devices
    return {**made, **launch.env, **(gpu_environment(launch.gpu_ids, assigned=True) if launch.gpu_ids else {})}


def command(launch: Launch, image: Image) -> tuple[str, ...]:
    """What the container runs: its command, else an MLE-bench agent's `start.sh`, else the image's own.

    Raises:
        SandboxError: Neither names a command.
    """
    if launch.command:
        return launch.command
    if image.agent_dir:
        return ("bash", f"{image.agent_dir}/start.sh")
    if not image.command:
        raise SandboxError(
            f"Neither agent {launch.agent.id} nor its image names a command.",
            hint="Give the agent a `command`.",
        )
    return image.command


def exit_of(state: dict[str, Any]) -> Exit | None:
    """Return how a container ended, from the `State` that Docker and Podman report; None while it runs."""
    if state["Status"] not in ("exited", "dead"):
        return None
    code = int(state["ExitCode"])
    out_of_memory = bool(state.get("OOMKilled")) and code != 0
    # init ends with 128 + N where signal N ended the agent, as a shell does.
    if 128 < code <= 128 + signal.NSIG:
        return Exit(code=None, signal=code - 128, out_of_memory=out_of_memory)
    return Exit(code=code, out_of_memory=out_of_memory)


def labels(run_id: str, owner: str) -> dict[str, str]:
    """Return the labels of everything that is made for a run."""
    return {RUN_LABEL: run_id, OWNER_LABEL: owner}
