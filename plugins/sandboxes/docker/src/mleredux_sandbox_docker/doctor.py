"""Checks of the Docker engine for `mleredux doctor`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Finding
from mleredux_containers import base_finding, base_image

from mleredux_sandbox_docker.engine import connect, engine_errors, find_image, security_options

OLDEST_API = (1, 41)
"""API version of Docker 20.10."""


def findings(runtime: str | None) -> list[Finding]:
    """Return findings on whether, and how well, agents can run in containers here.

    Args:
        runtime: The requested OCI runtime.
    """
    try:
        with closing(connect()) as client, engine_errors("The engine's information can't be read"):
            info, version = client.info(), client.version()
            return [
                _engine(version),
                _cgroup(info),
                _storage(info),
                _init(info),
                _runtime(info, runtime),
                base_finding("docker", find_image(client, base_image())),
            ]
    except SandboxError as error:
        return [Finding("docker engine", False, error.message, error.hint)]


def _engine(version: dict[str, Any]) -> Finding:
    api = tuple(int(part) for part in version["ApiVersion"].split("."))
    message = f"Docker engine {version['Version']} (API {version['ApiVersion']}) responds."
    return Finding("docker engine", api >= OLDEST_API, message, "Install Docker 20.10 or newer.")


def _cgroup(info: dict[str, Any]) -> Finding:
    keys = {"memory": "MemoryLimit", "CPU": "CpuCfsQuota", "process": "PidsLimit"}
    missing = [name for name, key in keys.items() if not info.get(key)]
    limits = f", without {' and '.join(missing)} limits" if missing else "; memory, CPUs and processes are limited"
    message = f"Control groups have version {info.get('CgroupVersion', '?')} ({info.get('CgroupDriver')}){limits}."
    remedy = "Enable these controllers; a rootless engine needs control groups of version 2 with delegation."
    return Finding("docker limits", not missing, message, remedy)


def _storage(info: dict[str, Any]) -> Finding:
    driver = str(info.get("Driver"))
    mode = ", ".join(sorted(security_options(info))) or "no security options"
    message = f"Images are stored with {driver} in {info.get('DockerRootDir')}; {mode}."
    remedy = "Use overlay2 (or fuse-overlayfs): vfs copies an image for each container."
    return Finding("docker storage", driver != "vfs", message, remedy)


def _init(info: dict[str, Any]) -> Finding:
    binary = info.get("InitBinary")
    message = f"Agents get {binary} as their init." if binary else "The engine has no init program."
    return Finding("docker init", bool(binary), message, "Install `tini` as `docker-init`.")


def _runtime(info: dict[str, Any], runtime: str | None) -> Finding:
    known = sorted(info.get("Runtimes") or ())
    message = f"Agents run with {runtime or info.get('DefaultRuntime')}; available: {', '.join(known)}."
    remedy = f"Install {runtime} and add it to `runtimes` in /etc/docker/daemon.json."
    if runtime and runtime not in known:
        message = f"The runtime {runtime} is requested, but the engine has only {', '.join(known)}."
    return Finding("docker runtime", runtime in (None, *known), message, remedy)
