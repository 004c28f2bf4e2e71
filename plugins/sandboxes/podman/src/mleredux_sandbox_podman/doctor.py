"""Checks of Podman for `mleredux doctor`."""

from __future__ import annotations

import shutil
import subprocess

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Finding
from mleredux_containers import base_finding, base_image

from mleredux_sandbox_podman.engine import OPTIONS_VARIABLE, call, command, find_image, info, init_program, reason

_OLDEST = (4, 2)
_RUNTIMES = ("crun", "runc", "kata-runtime", "runsc")


def findings() -> list[Finding]:
    """Return findings on whether agents can run in Podman's containers here."""
    try:
        output, facts = call("Podman does not respond", "version", "--format={{.Client.Version}}"), info()
        results = [_version((output or "").strip()), _limits(facts), _init()]
        image = find_image(base_image())
    except SandboxError as error:
        return [Finding("podman", False, error.message, error.hint or "Install podman.")]
    results.append(base_finding("podman", image))
    return [*results, _trial(image.id, facts)] if image else results


def working_options(image: str) -> str | None:
    """Return options with which containers run here, empty if none are needed; None if no tried options work."""
    tried = ["", *(f"--runtime {name}" for name in _RUNTIMES if shutil.which(name))]
    return next((options for options in tried if try_container(image, *options.split()) is None), None)


def try_container(image: str, *options: str) -> str | None:
    """Start a container with limits; return the reason if that fails, else None."""
    arguments = ["run", "--rm", "--network=none", "--memory=64m", "--pids-limit=32", "--cpus=1", "--cap-drop=ALL"]
    limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--pull=never"]
    arguments = [*options, *arguments, *limits, image.removeprefix("sha256:"), "true"]
    try:
        done = subprocess.run(command(*arguments), capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return reason(done.stderr) if done.returncode else None


def _version(version: str) -> Finding:
    parts = tuple(int(part) for part in version.split(".")[:2])
    remedy = f"Install Podman {'.'.join(map(str, _OLDEST))} or newer."
    return Finding("podman", parts >= _OLDEST, f"Podman {version} responds.", remedy)


def _limits(facts: dict[str, dict[str, object]]) -> Finding:
    host = facts["host"]
    has = host.get("cgroupControllers") or []
    missing = [name for name in ("memory", "cpu", "pids") if name not in list(has)]  # type: ignore[call-overload]
    limits = f", without {', '.join(missing)}" if missing else "; memory, CPUs and processes are limited"
    message = f"Control groups have version {host.get('cgroupVersion')} ({host.get('cgroupManager')}){limits}."
    remedy = "Enable these controllers; without root, they must be delegated to the user (systemd does)."
    return Finding("podman limits", not missing, message, remedy)


def _init() -> Finding:
    program = init_program()
    message = f"Agents get {program} as their init." if program else "No init program for containers is installed."
    return Finding("podman init", program is not None, message, "Install `catatonit`.")


def _trial(image: str, facts: dict[str, dict[str, object]]) -> Finding:
    """Check that a container really runs, because runtime and control groups may be incompatible."""
    runtime = dict(facts["host"].get("ociRuntime") or {}).get("name")  # type: ignore[call-overload]
    problem = try_container(image)
    if problem is None:
        return Finding("podman container", True, f"A container with limits can run ({runtime}).")
    works = working_options(image)
    remedy = f"Set {OPTIONS_VARIABLE}='{works}'." if works else "See `podman info` and the runtime's own documentation."
    return Finding("podman container", False, f"Containers can't run with {runtime} ({problem}).", remedy)
