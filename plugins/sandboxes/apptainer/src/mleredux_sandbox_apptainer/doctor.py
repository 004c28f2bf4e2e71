"""Checks of Apptainer for `mleredux doctor`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Finding
from mleredux_containers import BASE_VARIABLE, Container, Image, agent_user, base_image

from mleredux_sandbox_apptainer.engine import (
    IMAGES_VARIABLE,
    call,
    exec_command,
    find_image,
    images,
    reason,
    seccomp_profile,
    source_of,
    variables,
)

_OLDEST = (1, 2)
_TRIAL_SECONDS = 120
_LIMITS = (
    "Memory and processes are measured ten times a second; without root, processes are also limited. The number of "
    "CPUs is not limited. A cluster's own control groups apply to a job as a whole."
)


def findings() -> list[Finding]:
    """Return findings on whether agents can run in Apptainer's containers here."""
    try:
        version = call("Apptainer does not respond", "--version").split()[-1]
        results = [_version(version), _filter(), Finding("apptainer limits", True, _LIMITS)]
        image = find_image(base_image())
    except SandboxError as error:
        return [Finding("apptainer", False, error.message, error.hint or "Install apptainer.")]
    if not shutil.which("unshare"):
        results.append(
            Finding("apptainer builds", False, "The program unshare is not installed.", "Install `util-linux`.")
        )
    if image is None:
        message = f"The base image {base_image()} is not in {images()}; the first build fetches it."
        remedy = f"Without a registry, set {BASE_VARIABLE} to an image's file (.sif), or docker-archive:FILE."
        return [*results, Finding("apptainer base image", False, message, remedy)]
    message = f"The base image {base_image()} is available ({source_of(image)}; its folder is {IMAGES_VARIABLE})."
    return [*results, Finding("apptainer base image", True, message), _trial(image)]


def try_container(image: Image) -> str | None:
    """Start a container as for an agent; return the reason if that fails, else None."""
    with tempfile.TemporaryDirectory(prefix="mleredux-doctor-") as home:
        spec = Container(
            image=image.id,
            entrypoint=("/bin/sh", "-c"),
            command=("exit 7",),
            environment={"HOME": "/tmp"},
            user=agent_user(),
        )
        command, env = exec_command(spec, source_of(image), Path(home)), variables(Path(home), image.env)
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, errors="replace", timeout=_TRIAL_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        return None if done.returncode == 7 else reason(done.stderr)


def _version(version: str) -> Finding:
    numbers = version.partition("-")[0].split(".")[:2]
    ok = tuple(map(int, numbers)) >= _OLDEST
    remedy = f"Install Apptainer {'.'.join(map(str, _OLDEST))} or newer."
    return Finding("apptainer", ok, f"Apptainer {version} responds.", remedy)


def _filter() -> Finding:
    if profile := seccomp_profile():
        return Finding("apptainer seccomp", True, f"Agents' system calls are filtered by {profile}.")
    message = "Apptainer has no system call filter (seccomp-profiles/default.json): agents run without one."
    return Finding("apptainer seccomp", False, message, "Install Apptainer with its configuration files.")


def _trial(image: Image) -> Finding:
    problem = try_container(image)
    if problem is None:
        return Finding("apptainer container", True, "A container without network and privileges can run.")
    remedy = "Unprivileged user namespaces must be allowed: `unshare --user --net true` shows whether they are."
    return Finding("apptainer container", False, f"Containers can't run ({problem}).", remedy)
