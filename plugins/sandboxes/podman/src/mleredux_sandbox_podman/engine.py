"""The program `podman`: calling it, and a container in its options. Nothing of it runs between two calls."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.files import plain_path
from mleredux_containers import FIND, Container, Image, find_gpus

OPTIONS_VARIABLE = "MLEREDUX_PODMAN_OPTIONS"
"""Further options of `podman` itself, as in a shell: `--runtime runc --cgroup-manager cgroupfs`."""
_CALL_SECONDS = 120
_ABSENT = ("no such", "not known", "unable to find", "not found", "can only kill running", "is not running")
_INITS = ("catatonit", "docker-init", "tini-static", "tini")
_OWN_INIT = Path("/usr/libexec/podman/catatonit")
_PROFILES = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))
"""Podman's filters of system calls, the first of which is used."""
_NAMESPACE_CALLS = ("fsopen", "mount", "move_mount", "open_tree", "pivot_root", "setns", "umount", "umount2", "unshare")
_NEW_NAMESPACES = 0x7E020000
"""Flags of `clone` for namespaces of all kinds."""
_ENV_LINE = 32_000
"""Longer variables, or with line ends, don't fit into a file of variables."""


def command(*arguments: str) -> list[str]:
    """The command line of a call."""
    return ["podman", *shlex.split(os.environ.get(OPTIONS_VARIABLE, "")), *arguments]


def call(what: str, *arguments: str, absent: bool = False, seconds: float = _CALL_SECONDS) -> str | None:
    """Standard output of a call.

    Args:
        what: What is tried, for the error: `The container can't be removed`.
        arguments: Of the program.
        absent: Give None where what it is about is gone.
        seconds: How long it may take.

    Raises:
        SandboxError: The program is not there, or fails.
    """
    try:
        done = subprocess.run(command(*arguments), capture_output=True, text=True, errors="replace", timeout=seconds)
    except FileNotFoundError as error:
        raise SandboxError("The program podman is not installed.", hint="Install it: `apt install podman`.") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{what} ({type(error).__name__}: podman {arguments[0]}).") from error
    if done.returncode == 0:
        return done.stdout
    said = reason(done.stderr)
    if absent and any(word in said.lower() for word in _ABSENT):
        return None
    raise failure(what, said)


def failure(what: str, said: str) -> SandboxError:
    """The error of a call that failed."""
    hint = "`mleredux doctor` checks Podman."
    if "OCI" in said or "cgroup" in said or "rlimit" in said:
        hint = f"`mleredux doctor` says which runtime works here; name it: {OPTIONS_VARIABLE}='--runtime runc'."
    return SandboxError(f"{what} ({said}).", hint=hint)


def reason(text: str) -> str:
    """The last of what podman said, on one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    said = lines[-1].removeprefix("Error: ") if lines else "no reason is given"
    return said.rstrip(".")[-600:]


def records(what: str, *arguments: str) -> list[dict[str, Any]]:
    """What a call gives as JSON; nothing where what it is about is gone."""
    said = call(what, *arguments, absent=True)
    return json.loads(said or "[]") or []


def find_image(name: str) -> Image | None:
    """An image that is there, None where it is not."""
    found = records(f"Image {name} can't be looked up", "image", "inspect", name)
    if not found:
        return None
    return Image.from_record({**found[0], "Id": f"sha256:{found[0]['Id'].removeprefix('sha256:')}"})


def list_files(image: str, user: tuple[int, int]) -> str:
    """Return the paths of the files of an image, those that a user can see, by a container of it."""
    options = ("--rm", "--network=none", "--cap-drop=all", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
    who = (f"--user={user[0]}:{user[1]}", f"--entrypoint={FIND[0]}")
    return call("The files of the agent's image can't be listed", "run", *options, *who, image, *FIND[1:]) or ""


def info() -> dict[str, Any]:
    """What podman tells of itself and this machine."""
    return dict(json.loads(call("Podman can't be asked about itself", "info", "--format", "json") or "{}"))


def store_on(folder: Path) -> list[str]:
    """Options of `podman` for a store in a folder that sees the images of podman's own; empty where there is none."""
    store = info()["store"]
    if store["graphDriverName"] != "overlay":
        return []
    above = f"--storage-opt=additionalimagestore={store['graphRoot']}"
    return [f"--root={folder / 'store'}", f"--runroot={folder / 'run'}", "--storage-driver=overlay", above]


def state_of(container: str) -> dict[str, Any]:
    """A container's state in the words of Docker; empty where it is gone."""
    what = f"Container {container[:12]} can't be asked how it is"
    found = records(what, "container", "inspect", container)
    state: dict[str, Any] = found[0]["State"] if found else {}
    if state.get("Status") == "stopped":  # ended, and not cleaned up yet
        state["Status"] = "exited"
    return state


def remove(container: str | None) -> None:
    """Remove a container, whatever its state, with the volumes that are its own."""
    if container:
        call(f"Container {container[:12]} can't be removed", "rm", "--force", "--volumes", container, absent=True)


def init_program() -> str | None:
    """The program that becomes a container's first process; None where podman can't find one."""
    if _OWN_INIT.exists():
        return str(_OWN_INIT)
    return next((path for name in _INITS if (path := shutil.which(name))), None)


def run_options(made: Container, cid_file: Path, env_file: Path, *, log: str = "passthrough") -> list[str]:
    """Arguments of `podman` that start a container, its output going where podman's own goes.

    Args:
        made: What to start.
        cid_file: Where podman writes its id.
        env_file: Written with its variables, which do not show in the list of processes.
        log: The driver of its log.
    """
    gpus = find_gpus(made.gpus)
    lines = [f"{name}={value}" for name, value in {**made.environment, **gpus.environment}.items()]
    rest = [line for line in lines if len(line) > _ENV_LINE or "\n" in line or "\r" in line or line[0] in "# "]
    env_file.touch(mode=0o600)
    env_file.write_text("".join(f"{line}\n" for line in lines if line not in rest), "utf-8", "surrogateescape")
    return [
        "run",
        "--detach",
        f"--cidfile={cid_file}",
        f"--log-driver={log}",
        "--pull=never",
        f"--env-file={plain_path(env_file)}",
        *(f"--env={line}" for line in rest),
        "--unsetenv=container",
        "--unsetenv=TERM",
        "--http-proxy=false",  # the user's proxies may hold a password
        *(f"--label={name}={value}" for name, value in made.labels.items()),
        f"--user={made.user[0]}:{made.user[1]}",
        "--hostname=sandbox",
        "--network=none",
        f"--memory={made.memory}b",
        f"--memory-swap={made.memory}b",
        f"--shm-size={made.shared_memory}b",
        f"--cpus={made.cpus}",
        f"--pids-limit={made.processes}",
        *ulimits(made),
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        *filtered(cid_file.with_name("seccomp.json")),
        f"--read-only={str(made.read_only).lower()}",
        "--read-only-tmpfs=false",
        "--ipc=private",
        "--init",
        f"--init-path={init_program()}",
        "--no-healthcheck",
        "--restart=no",
        "--systemd=false",
        "--sdnotify=ignore",
        *(f"--mount={bind.line()}" for bind in made.binds),
        *(f"--mount=type=volume,destination={target}" for target in made.volumes),
        *(f"--device={device}" for device in gpus.names or [f"{one.source}:{one.target}" for one in gpus.nodes]),
        *([f"--workdir={made.working_dir}"] if made.working_dir else []),
        f"--entrypoint={json.dumps(made.entrypoint)}",
        made.image.removeprefix("sha256:"),
        *made.command,
    ]


def filtered(path: Path) -> list[str]:
    """Arguments of `podman` that filter system calls by its own profile, without those for namespaces and mounts.

    Podman allows them for containers in containers: root of a new user namespace reaches much more of the kernel.

    Args:
        path: Where the filter is written.
    """
    profile = next((one for one in _PROFILES if one.exists()), None)
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
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},  # its flags can't be seen; C libraries go on
        {"names": _NAMESPACE_CALLS, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
    ]
    path.write_text(json.dumps(content), encoding="utf-8")
    return [f"--security-opt=seccomp={plain_path(path)}"]


def ulimits(made: Container) -> list[str]:
    """The container's, and what else podman would raise beyond what this program may: an error without privileges."""
    import resource

    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    processes = most if hard == resource.RLIM_INFINITY else min(hard, most)
    limits = {"fsize": made.file_size, "nofile": made.open_files, "core": 0, "nproc": processes}
    return [f"--ulimit={name}={value}:{value}" for name, value in limits.items()]
