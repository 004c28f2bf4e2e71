"""The program `podman`: calls, and options for containers. No process of it runs between two calls."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.files import plain_path
from mleredux_containers import FIND, Container, Image, find_gpus

OPTIONS_VARIABLE = "MLEREDUX_PODMAN_OPTIONS"
"""Additional options of `podman` itself, in shell syntax: `--runtime runc --cgroup-manager cgroupfs`."""
_CALL_SECONDS = 120
_ABSENT = ("no such", "not known", "unable to find", "not found", "can only kill running", "is not running")
_INITS = ("catatonit", "docker-init", "tini-static", "tini")
_OWN_INIT = Path("/usr/libexec/podman/catatonit")
_PROFILES = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))
"""Paths of Podman's system call filter; the first file that exists is used."""
_NAMESPACE_CALLS = ("fsopen", "mount", "move_mount", "open_tree", "pivot_root", "setns", "umount", "umount2", "unshare")
_NEW_NAMESPACES = 0x7E020000
"""Flags of `clone` for namespaces of all kinds."""
_ENV_LINE = 32_000
"""Maximum length of a line in an env file; longer variables, and those with newlines, are passed differently."""


def command(*arguments: str) -> list[str]:
    """Return the command line of a call."""
    return ["podman", *shlex.split(os.environ.get(OPTIONS_VARIABLE, "")), *arguments]


def getenv() -> dict[str, str]:
    """Return the variables of a call: if TMPDIR can't be used, Python uses another folder, while Podman would fail."""
    return {**os.environ, "TMPDIR": tempfile.gettempdir()}


def call(problem: str, *arguments: str, absent: bool = False, seconds: float = _CALL_SECONDS) -> str | None:
    """Run the program; return its standard output.

    Args:
        problem: The error message if the call fails: `The container can't be removed`.
        arguments: Arguments of the program.
        absent: Whether to return None if the object of the call does not exist.
        seconds: Time limit in seconds.

    Raises:
        SandboxError: The program is not installed, or fails.
    """
    try:
        done = subprocess.run(command(*arguments), capture_output=True, errors="replace", timeout=seconds, env=getenv())
    except FileNotFoundError as error:
        raise SandboxError("The program podman is not installed.", hint="Install it: `apt install podman`.") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{problem} ({type(error).__name__}: podman {arguments[0]}).") from error
    if done.returncode == 0:
        return done.stdout
    message = reason(done.stderr)
    if absent and any(word in message.lower() for word in _ABSENT):
        return None
    raise failure(problem, message)


def failure(problem: str, message: str) -> SandboxError:
    """Return the error of a failed call."""
    hint = "`mleredux doctor` checks Podman."
    if "OCI" in message or "cgroup" in message or "rlimit" in message:
        hint = f"`mleredux doctor` shows which runtime works here; select it with {OPTIONS_VARIABLE}='--runtime runc'."
    return SandboxError(f"{problem} ({message}).", hint=hint)


def reason(text: str) -> str:
    """Return the last line of podman's output, without its prefix."""
    lines = [line for line in text.splitlines() if line.strip()]
    message = lines[-1].removeprefix("Error: ") if lines else "it printed no reason"
    return message.rstrip(".")[-600:]


def records(problem: str, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON output of a call; an empty list if the object of the call does not exist."""
    return json.loads(call(problem, *arguments, absent=True) or "[]") or []


def find_image(name: str) -> Image | None:
    """Return an image, or None if it does not exist."""
    images = records(f"Image {name} can't be looked up", "image", "inspect", name)
    if not images:
        return None
    return Image.from_record({**images[0], "Id": f"sha256:{images[0]['Id'].removeprefix('sha256:')}"})


def list_files(image: str, user: tuple[int, int]) -> str:
    """Return the paths of an image's files that a user can see, listed by a container of the image."""
    options = ("--rm", "--network=none", "--cap-drop=all", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
    who = (f"--user={user[0]}:{user[1]}", f"--entrypoint={FIND[0]}")
    return call("The files of the agent's image can't be listed", "run", *options, *who, image, *FIND[1:]) or ""


def info() -> dict[str, Any]:
    """Return podman's information about itself and this machine."""
    return dict(json.loads(call("Podman's information can't be read", "info", "--format", "json") or "{}"))


def store_on(folder: Path) -> list[str]:
    """Return the `podman` options for a store that is in a folder and shares the default store's images; empty if
    impossible."""
    store = info()["store"]
    if store["graphDriverName"] != "overlay":
        return []
    above = f"--storage-opt=additionalimagestore={store['graphRoot']}"
    return [f"--root={folder / 'store'}", f"--runroot={folder / 'run'}", "--storage-driver=overlay", above]


def state_of(container: str) -> dict[str, Any]:
    """Return a container's state in Docker's format; empty if it does not exist."""
    problem = f"The state of container {container[:12]} can't be read"
    states = records(problem, "container", "inspect", container)
    state: dict[str, Any] = states[0]["State"] if states else {}
    if state.get("Status") == "stopped":  # ended, but not cleaned up yet
        state["Status"] = "exited"
    return state


def remove(container: str | None) -> None:
    """Remove a container in any state, with its anonymous volumes."""
    if container:
        call(f"Container {container[:12]} can't be removed", "rm", "--force", "--volumes", container, absent=True)


def init_program() -> str | None:
    """Return the path of the init program for containers; None if podman can't find one."""
    if _OWN_INIT.exists():
        return str(_OWN_INIT)
    return next((path for name in _INITS if (path := shutil.which(name))), None)


def run_options(spec: Container, cid_file: Path, env_file: Path, *, log: str = "passthrough") -> list[str]:
    """Return arguments of `podman` that start a container whose output is that of podman itself.

    Args:
        spec: The container to start.
        cid_file: The file to which podman writes the container's id.
        env_file: The file to write its variables to, which keeps them out of process lists.
        log: The log driver.
    """
    gpus = find_gpus(spec.gpus)
    lines = [f"{name}={value}" for name, value in spec.environment.items()]
    unsafe = [line for line in lines if len(line) > _ENV_LINE or "\n" in line or "\r" in line or line[0] in "# "]
    env_file.touch(mode=0o600)
    env_file.write_text("".join(f"{line}\n" for line in lines if line not in unsafe), "utf-8", "surrogateescape")
    return [
        "run",
        "--detach",
        f"--cidfile={cid_file}",
        f"--log-driver={log}",
        "--pull=never",
        f"--env-file={plain_path(env_file)}",
        *(f"--env={line}" for line in unsafe),
        "--unsetenv=container",
        "--unsetenv=TERM",
        "--http-proxy=false",  # the user's proxies may contain a password
        *(f"--label={name}={value}" for name, value in spec.labels.items()),
        f"--user={spec.user[0]}:{spec.user[1]}",
        "--hostname=sandbox",
        "--network=none",
        f"--memory={spec.memory}b",
        f"--memory-swap={spec.memory}b",
        f"--shm-size={spec.shared_memory}b",
        f"--cpus={spec.cpus}",
        f"--pids-limit={spec.processes}",
        *ulimits(spec),
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        *filtered(cid_file.with_name("seccomp.json")),
        f"--read-only={str(spec.read_only).lower()}",
        "--read-only-tmpfs=false",
        "--ipc=private",
        "--init",
        f"--init-path={init_program()}",
        "--no-healthcheck",
        "--restart=no",
        "--systemd=false",
        "--sdnotify=ignore",
        *(f"--mount={bind.line()}" for bind in spec.binds),
        *(f"--mount=type=volume,destination={target}" for target in spec.volumes),
        *(f"--device={device}" for device in gpus.names or [f"{node.source}:{node.target}" for node in gpus.nodes]),
        *([f"--workdir={spec.working_dir}"] if spec.working_dir else []),
        f"--entrypoint={json.dumps(spec.entrypoint)}",
        spec.image.removeprefix("sha256:"),
        *spec.command,
    ]


def filtered(path: Path) -> list[str]:
    """Return arguments of `podman` that filter system calls by its own profile, without those for namespaces and
    mounts.

    Podman allows these calls for nested containers, but they expose much more of the kernel to root of a new user
    namespace.

    Args:
        path: The file to write the filter to.
    """
    profile = next((candidate for candidate in _PROFILES if candidate.exists()), None)
    if profile is None:
        return []
    content = json.loads(profile.read_bytes())
    taken = {*_NAMESPACE_CALLS, "clone", "clone3"}
    for rule in content["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in taken]
    flags = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    content["syscalls"] = [
        *(rule for rule in content["syscalls"] if rule["names"]),
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [flags]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},  # clone3's flags are hidden
        {"names": _NAMESPACE_CALLS, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
    ]
    path.write_text(json.dumps(content), encoding="utf-8")
    return [f"--security-opt=seccomp={plain_path(path)}"]


def ulimits(spec: Container) -> list[str]:
    """Return limits of the container, including those that podman would raise, which fails without privileges."""
    import resource

    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    processes = most if hard == resource.RLIM_INFINITY else min(hard, most)
    limits = {"fsize": spec.file_size, "nofile": spec.open_files, "core": 0, "nproc": processes}
    return [f"--ulimit={name}={value}:{value}" for name, value in limits.items()]
