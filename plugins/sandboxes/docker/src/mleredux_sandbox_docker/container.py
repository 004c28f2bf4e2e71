"""SDK settings of a container, and the paths of its notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux_containers import Bind, Container, find_gpus

HOST_NAME = "sandbox"
LOG_FILES, LOG_FILE_MB = 4, 64
"""Maximum number and size of the engine's log files of an agent; the run's own log is complete."""
_FEWEST_LOG_MB, _LOG_SHARE = 5, 100


def log_file_mb(container: Container) -> int:
    """Return the size of each log file of the engine in MB: together a few percent of the disk limit, or 20 MB."""
    return min(LOG_FILE_MB, max(_FEWEST_LOG_MB, container.file_size // _LOG_SHARE >> 20))


def settings(container: Container, *, runtime: str | None = None, userns_remapped: bool = False) -> dict[str, Any]:
    """Return keyword arguments for the SDK's `create_host_config` (under `host_config`) and `create_container`.

    Args:
        container: The container to start.
        runtime: The OCI runtime; None for the engine's default.
        userns_remapped: Whether the engine remaps user ids of containers.

    Raises:
        SandboxError: A GPU is unknown here.
    """
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    gpus = find_gpus(container.gpus)
    # `local` stores bytes unchanged; `json-file` replaces bytes that are not valid UTF-8.
    log = {"max-size": f"{log_file_mb(container)}m", "max-file": str(LOG_FILES), "compress": "false"}
    host: dict[str, Any] = {
        "mounts": [
            *map(_mount, container.binds + gpus.files),
            *(Mount(target, None, type="volume") for target in container.volumes),
        ],
        "network_mode": "none",
        "mem_limit": container.memory,
        "memswap_limit": container.memory,
        "shm_size": container.shared_memory,
        "nano_cpus": int(container.cpus * 1e9),
        "pids_limit": container.processes,
        "ulimits": [
            Ulimit(name="fsize", soft=container.file_size, hard=container.file_size),
            Ulimit(name="nofile", soft=container.open_files, hard=container.open_files),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": container.read_only,
        "ipc_mode": "private",
        "init": True,
        "extra_hosts": {HOST_NAME: "127.0.0.1"},
        "log_config": LogConfig(type="local", config=log),
        "restart_policy": {"Name": "no"},
    }
    if gpus.names:
        host["devices"] = [f"{node.source.resolve()}:{node.target}" for node in gpus.nodes]
    elif container.gpus:  # only the toolkit finds the driver's libraries without a specification
        host["device_requests"] = [DeviceRequest(device_ids=list(container.gpus), capabilities=[["gpu"]])]
    if runtime:
        host["runtime"] = runtime
    if userns_remapped:
        host["userns_mode"] = "host"
    return {
        "image": container.image,
        "entrypoint": list(container.entrypoint),
        "command": list(container.command),
        "environment": container.environment,
        "user": f"{container.user[0]}:{container.user[1]}",
        "labels": container.labels,
        "hostname": HOST_NAME,
        "working_dir": container.working_dir,
        "healthcheck": {"test": ["NONE"]},
        "use_config_proxy": False,  # the user's proxies may contain a password
        "host_config": host,
    }


def _mount(bind: Bind) -> Any:
    """Return a bind mount; the engine refuses a source that does not exist."""
    from docker.types import Mount

    return Mount(bind.target, str(bind.source.resolve()), type="bind", read_only=not bind.writable)


def control_file(control_dir: Path) -> Path:
    """Return the path of the file that stores the id of the launch's container."""
    return control_dir / "container.json"


def log_note(control_dir: Path) -> Path:
    """Return the path of the file that stores how much of the container's output is in the run's log."""
    return control_dir / "container.log-note"
