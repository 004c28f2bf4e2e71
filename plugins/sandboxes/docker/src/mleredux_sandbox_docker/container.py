"""A launch in the engine's words: every limit and hardening of an agent's container, in one place."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Exit, Launch, Layout

from mleredux_sandbox_docker.engine import labels
from mleredux_sandbox_docker.folders import INSIDE, Bind

if TYPE_CHECKING:
    from docker import APIClient

LAYOUT = Layout(
    task="/task",
    data="/task/data",
    output="/output",
    scratch="/tmp",
    validate_url="http://localhost:5000/validate",
    gateway_url="http://localhost:4000",
)
LOG_FILES, LOG_FILE_MB = 4, 64
"""What the engine keeps of an agent's output, at most; the run's own log has all of it."""
OWN_PROCESSES = 2
"""init, and the forwarder to validation and gateway."""
_OPEN_FILES = 65536
_MIB = 1 << 20


def settings(
    launch: Launch,
    binds: list[Bind],
    *,
    user: tuple[int, int],
    image: dict[str, Any],
    cpus: int,
    network: str,
    runtime: str | None = None,
    userns_remapped: bool = False,
) -> dict[str, Any]:
    """Keyword arguments of the SDK's `create_host_config` (under `host_config`) and `create_container`.

    Args:
        launch: What to start.
        binds: What is mounted.
        user: User and group id of the agent.
        image: The engine's description of the image.
        cpus: CPUs of the engine's machine.
        network: The network's name, or `none`.
        runtime: The OCI runtime, the engine's default where None.
        userns_remapped: Whether the engine gives containers other user ids than the host's.
    """
    from docker.types import DeviceRequest, LogConfig, Ulimit

    limits, config = launch.limits, image.get("Config") or {}
    image_env = dict(item.partition("=")[::2] for item in config.get("Env") or ())
    memory = limits.memory_mb * _MIB
    # An engine without CAP_SYS_RESOURCE can't give more than it has; its limit is mostly the same as ours.
    open_files = min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    file_size = limits.disk_mb * _MIB
    # `local` keeps bytes as they are; `json-file` replaces what is not UTF-8.
    log = {"max-size": f"{LOG_FILE_MB}m", "max-file": str(LOG_FILES), "compress": "false"}
    host: dict[str, Any] = {
        "mounts": [bind.mount() for bind in binds],
        "network_mode": network,
        "mem_limit": memory,
        "memswap_limit": memory,
        "shm_size": memory // 2,
        "nano_cpus": int(min(limits.cpus, cpus) * 1e9),
        # One more than the agent may have, so that it can be seen to go beyond its limit.
        "pids_limit": limits.processes + OWN_PROCESSES + 1,
        "ulimits": [
            Ulimit(name="fsize", soft=file_size, hard=file_size),
            Ulimit(name="nofile", soft=open_files, hard=open_files),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": not launch.agent.build.writable_root,
        "ipc_mode": "private",
        "init": True,
        "log_config": LogConfig(type="local", config=log),
        "restart_policy": {"Name": "no"},
    }
    if launch.gpu_ids:
        host["device_requests"] = [DeviceRequest(device_ids=list(launch.gpu_ids), capabilities=[["gpu"]])]
    if runtime:
        host["runtime"] = runtime
    if userns_remapped:
        host["userns_mode"] = "host"

    sockets = [place.name if place else "-" for place in (launch.validate_socket, launch.gateway_socket)]
    create: dict[str, Any] = {
        "image": image["Id"],
        "entrypoint": ["/bin/sh", f"{INSIDE}/entrypoint.sh", *sockets],
        "command": command(launch, config, image_env),
        "environment": environment(launch, image_env),
        "user": f"{user[0]}:{user[1]}",
        "labels": labels(launch.run_id, launch.owner),
        "hostname": "sandbox",
        "working_dir": LAYOUT.output if launch.command else None,
        "healthcheck": {"test": ["NONE"]},
        "use_config_proxy": False,  # the user's proxies may hold a password
        "host_config": host,
    }
    home = agent_dir(image_env)
    if home:
        # A volume starts with the image's own files: an agent may write beside its program, as in MLE-bench.
        host["mounts"].append(_volume(home))
    return create


def environment(launch: Launch, image_env: dict[str, str]) -> dict[str, str]:
    """The launch's variables, and those by which an agent made for MLE-bench finds its way."""
    made = {
        "HOME": LAYOUT.scratch,
        "USER": "agent",
        "LOGNAME": "agent",
        "COMPETITION_ID": launch.env.get("MLEREDUX_TASK", ""),
        "SUBMISSION_DIR": "/home/submission",
        "LOGS_DIR": "/home/logs",
        "CODE_DIR": "/home/code",
        "AGENT_DIR": agent_dir(image_env) or "/home/agent",
    }
    if "NVIDIA_VISIBLE_DEVICES" in image_env and not launch.gpu_ids:
        made["NVIDIA_VISIBLE_DEVICES"] = "void"  # images of CUDA ask for all devices
    return {**made, **launch.env}


def command(launch: Launch, config: dict[str, Any], image_env: dict[str, str]) -> list[str]:
    """What the container runs: its command, else an MLE-bench agent's `start.sh`, else the image's own.

    Raises:
        SandboxError: Neither names a command.
    """
    if launch.command:
        return list(launch.command)
    if agent_dir(image_env):
        return ["bash", f"{agent_dir(image_env)}/start.sh"]
    own = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    if not own:
        raise SandboxError(
            f"Neither agent {launch.agent.id} nor its image names a command.",
            hint="Give the agent a `command`.",
        )
    return own


def agent_dir(image_env: dict[str, str]) -> str | None:
    """The agent's folder in an image made for MLE-bench, which such an image names in its environment."""
    folder = image_env.get("AGENT_DIR", "")
    return folder if folder.startswith("/") and folder.strip("/") else None


def exit_of(state: dict[str, Any]) -> Exit | None:
    """How a container ended, from the engine's `State`; None while it runs."""
    if state["Status"] not in ("exited", "dead"):
        return None
    code = int(state["ExitCode"])
    out_of_memory = bool(state.get("OOMKilled")) and code != 0
    # init ends with 128 + N where signal N ended the agent, as a shell does.
    if 128 < code <= 128 + signal.NSIG:
        return Exit(code=None, signal=code - 128, out_of_memory=out_of_memory)
    return Exit(code=code, out_of_memory=out_of_memory)


def _volume(target: str) -> Any:
    from docker.types import Mount

    return Mount(target, None, type="volume")


def make_network(client: APIClient, launch: Launch) -> str:
    """The launch's network: `none`, or the name of one of its own, so that agents do not see one another.

    With `gateway` there is none either: the gateway is reached by its Unix socket.

    Raises:
        SandboxError: The policy is not known.
    """
    if launch.network in ("none", "gateway"):
        return "none"
    if launch.network != "open":
        raise SandboxError(f"There is no network policy {launch.network!r}.", hint="Use none, gateway or open.")
    name = network_name(launch)
    for old in client.networks(names=[name]):
        if old["Name"] == name:
            client.remove_network(old["Id"])
    client.create_network(name, driver="bridge", labels=labels(launch.run_id, launch.owner))
    return name


def network_name(launch: Launch) -> str:
    """The name of the launch's own network."""
    return f"mleredux-{launch.run_id}"


def control_file(control_dir: Path) -> Path:
    """Where the sandbox notes which container is the launch's."""
    return control_dir / "container.json"


def log_note(control_dir: Path) -> Path:
    """Where the sandbox notes how far the container's output stands in the run's log."""
    return control_dir / "container.log-note"
