"""A container in the SDK's words, and its notes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mleredux.plugin.container import LAYOUT, Bind, Container, Image

HOST_NAME = "sandbox"
LOG_FILES, LOG_FILE_MB = 4, 64
"""What the engine keeps of an agent's output, at most; the run's own log has all of it."""
_FEWEST_LOG_MB, _LOG_SHARE = 5, 100
_LONGEST = 1 << 20
_PLAIN = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    "group": "root:x:0:\nnogroup:x:65534:",
}
"""For images whose own files can't be read here: of an engine on another machine, say."""


def log_file_mb(made: Container) -> int:
    """The size of each file in which the engine keeps output: together a few per cent of the disk limit, or 20 MB."""
    return min(LOG_FILE_MB, max(_FEWEST_LOG_MB, made.file_size // _LOG_SHARE >> 20))


def settings(made: Container, *, runtime: str | None = None, userns_remapped: bool = False) -> dict[str, Any]:
    """Keyword arguments of the SDK's `create_host_config` (under `host_config`) and `create_container`.

    Args:
        made: What to start.
        runtime: The OCI runtime, the engine's default where None.
        userns_remapped: Whether the engine gives containers other user ids than the host's.
    """
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    # `local` keeps bytes as they are; `json-file` replaces what is not UTF-8.
    log = {"max-size": f"{log_file_mb(made)}m", "max-file": str(LOG_FILES), "compress": "false"}
    host: dict[str, Any] = {
        "mounts": [*map(_mount, made.binds), *(Mount(target, None, type="volume") for target in made.volumes)],
        "network_mode": "none",
        "mem_limit": made.memory,
        "memswap_limit": made.memory,
        "shm_size": made.shared_memory,
        "nano_cpus": int(made.cpus * 1e9),
        "pids_limit": made.processes,
        "ulimits": [
            Ulimit(name="fsize", soft=made.file_size, hard=made.file_size),
            Ulimit(name="nofile", soft=made.open_files, hard=made.open_files),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": made.read_only,
        "ipc_mode": "private",
        "init": True,
        "extra_hosts": {HOST_NAME: "127.0.0.1"},
        "log_config": LogConfig(type="local", config=log),
        "restart_policy": {"Name": "no"},
    }
    if made.gpus:
        host["device_requests"] = [DeviceRequest(device_ids=list(made.gpus), capabilities=[["gpu"]])]
    if runtime:
        host["runtime"] = runtime
    if userns_remapped:
        host["userns_mode"] = "host"
    return {
        "image": made.image,
        "entrypoint": list(made.entrypoint),
        "command": list(made.command),
        "environment": made.environment,
        "user": f"{made.user[0]}:{made.user[1]}",
        "labels": made.labels,
        "hostname": HOST_NAME,
        "working_dir": made.working_dir,
        "healthcheck": {"test": ["NONE"]},
        "use_config_proxy": False,  # the user's proxies may hold a password
        "host_config": host,
    }


def _mount(bind: Bind) -> Any:
    """The engine refuses a source that does not exist."""
    from docker.types import Mount

    return Mount(bind.target, str(bind.source.resolve()), type="bind", read_only=not bind.writable)


def user_entries(image: Image, user: tuple[int, int], folder: Path) -> list[Bind]:
    """Files in place of `/etc/passwd` and `/etc/group` of an image, with an entry for the agent's user.

    Args:
        folder: Where to write them.
    """
    entries = {
        "passwd": f"agent:x:{user[0]}:{user[1]}:agent:{LAYOUT.scratch}:/bin/sh\n",
        "group": f"agent:x:{user[1]}:\n",
    }
    binds = []
    for name, entry in entries.items():
        found = _file_of(image, f"etc/{name}") or _PLAIN[name]
        if not any(line.split(":")[2:3] == [entry.split(":")[2]] for line in found.splitlines()):
            written = folder / name
            written.write_text(f"{found.rstrip()}\n{entry}", encoding="utf-8")
            written.chmod(0o644)
            binds.append(Bind(written, f"/etc/{name}"))
    return binds


def _file_of(image: Image, path: str) -> str | None:
    """The text of an image's file, as far as the engine's layers can be read here."""
    for layer in image.layers:
        if (layer / path).parent.is_symlink():
            continue  # it would lead to this machine's files
        try:
            handle = os.open(layer / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(handle, "rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    return None


def control_file(control_dir: Path) -> Path:
    """Where the sandbox notes which container is the launch's."""
    return control_dir / "container.json"


def log_note(control_dir: Path) -> Path:
    """Where the sandbox notes how far the container's output stands in the run's log."""
    return control_dir / "container.log-note"
