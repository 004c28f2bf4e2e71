"""The program `apptainer`: options for containers, and images as files. No process of it runs between two calls."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.files import cache_dir, disk_usage, plain_path
from mleredux_containers import FIND, Container, Image, find_gpus

OPTIONS_VARIABLE = "MLEREDUX_APPTAINER_OPTIONS"
"""Additional options of `apptainer exec` for agents, in shell syntax."""
IMAGES_VARIABLE = "MLEREDUX_APPTAINER_IMAGES"
"""The folder of images; on a cluster, a folder that all nodes share."""
RUNSCRIPT = "/.singularity.d/runscript"
"""The script that runs the entry point and command of an image."""
CONTAINED = (
    "--containall",
    "--no-home",
    "--no-eval",
    "--no-umask",
    "--no-init",
    "--no-mount=home,tmp,cwd,hostfs,bind-paths",
    "--net",
    "--network=none",
)
"""Options of every container: no access to the host's files, environment, processes and networks."""
ROOT, _RECORD = "root", "image.json"
_CALL_SECONDS = 60
_OWN_THREADS = 24
"""Threads of the container's init, and of the forwarder to validation and gateway."""
_ROOTS_PROCESSES = 4096
_KEPT = ("PATH", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_NAMESPACE_CALLS = {"keyctl", "mount", "pivot_root", "setns", "umount", "umount2", "unshare"}
_NEWER_CALLS = [
    "close_range",
    "epoll_pwait2",
    "faccessat2",
    "fchmodat2",
    "futex_waitv",
    "openat2",
    "pidfd_open",
    "rseq",
    "statx",
]
_SIF_ID = slice(48, 64)
_IDENTITY = re.compile(r"([0-9a-f]{32})#(.*)", re.DOTALL)
_EXPORT = re.compile(r'^export (\w+)="\$\{\1:-"?(.*?)"?\}"$', re.MULTILINE)
_ADDED = ("APPNAME", "BIND", "COMMAND", "CONTAINER", "ENVIRONMENT", "NAME", "NO_EVAL")
_UNSET = " ".join(
    [f"{prefix}_{name}" for prefix in ("APPTAINER", "SINGULARITY") for name in _ADDED]
    + ["LD_LIBRARY_PATH", "PROMPT_COMMAND", "PS1", "USER_PATH"]
)
_INIT = f"""\
ulimit -u "$1" 2>/dev/null || ulimit -p "$1"; export HOME="$2"; unset {_UNSET}; shift 2
if env --default-signal true 2>/dev/null; then set -- env --default-signal "$@"; fi
trap 'kill -TERM "$child"' TERM
"$@" &
child=$!
while :; do wait "$child"; code=$?; kill -0 "$child" 2>/dev/null || exit "$code"; done
"""
"""The first process of a container, needed because the environment of Apptainer's init would reveal the machine's
paths: it limits processes, removes variables that Apptainer adds, forwards SIGTERM, and reaps all processes."""


def call(problem: str, *arguments: str, seconds: float = _CALL_SECONDS) -> str:
    """Run the program; return its standard output.

    Args:
        problem: The error message if the call fails: `The image can't be read`.
        arguments: Arguments of the program.
        seconds: Time limit in seconds.

    Raises:
        SandboxError: The program is not installed, or fails.
    """
    try:
        done = subprocess.run(
            ["apptainer", "--silent", *arguments], capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except FileNotFoundError as error:
        hint = "Install it: your distribution's package `apptainer`, or as described at apptainer.org/docs."
        raise SandboxError("The program apptainer is not installed.", hint=hint) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{problem} ({type(error).__name__}: apptainer {arguments[0]}).") from error
    if done.returncode:
        raise SandboxError(f"{problem} ({reason(done.stderr)}).", hint="`mleredux doctor` checks Apptainer.")
    return done.stdout


def reason(text: str) -> str:
    """Return the last line of apptainer's output, without its prefix."""
    lines = [line for line in text.splitlines() if line.strip()]
    message = re.sub(r"^\S*(FATAL|ERROR):\s*", "", lines[-1]) if lines else "it printed no reason"
    return message.rstrip(".")[-600:]


def images() -> Path:
    """Return the folder of images: `cache/apptainer` under the user's cache folder, unless a variable sets another."""
    named = os.environ.get(IMAGES_VARIABLE)
    if named or os.getuid():
        return Path(named) if named else cache_dir() / "apptainer"
    return Path("/var/cache/mleredux/apptainer")  # builds by root run as another user, who needs access


def place(name: str) -> Path:
    """Return the path of an image in the folder of images; absolute paths are returned unchanged."""
    return Path(name) if name.startswith("/") else images() / re.sub(r"[/:]+", "_", name)


def find_image(name: str) -> Image | None:
    """Return an image by name, path or identity; None if it does not exist."""
    own = _IDENTITY.match(name)
    wanted, name = (own[1], own[2]) if own else ("", name)
    path = place(name)
    for file in (path / _RECORD, path, path.with_name(f"{path.name}.sif")):
        try:
            if file.is_file():
                image = _image(file, name, file.stat().st_mtime_ns)
                return image if wanted in ("", image.id.partition("#")[0]) else None
        except OSError:
            continue
    return None


def write_record(
    folder: Path, env: dict[str, str], command: Sequence[str] = (RUNSCRIPT,), volumes: Sequence[str] = ()
) -> None:
    """Write the record of an image into its folder, whose subfolder `root` contains the files, with a new identity."""
    megabytes = disk_usage(folder / ROOT)[0] >> 20
    record = {"id": uuid.uuid4().hex, "env": env, "command": command, "volumes": volumes, "size_mb": megabytes}
    (folder / _RECORD).write_text(json.dumps(record), encoding="utf-8")


def source_of(image: Image) -> Path:
    """Return the folder or file that contains an image's files."""
    path = place(image.tags[0])
    return plain_path(
        image.layers[0] if image.layers else path if path.is_file() else path.with_name(f"{path.name}.sif")
    )


def list_files(image: Image) -> str:
    """Return the paths of the files of an image."""
    options = (*CONTAINED, "--no-privs", "--drop-caps=all")
    return call("The files of the agent's image can't be listed", "exec", *options, str(source_of(image)), *FIND)


def variables_of(path: Path) -> dict[str, str]:
    """Return variables that an image sets, from its scripts."""
    output = call(f"Image {path} can't be read", "inspect", "--json", "--environment", str(plain_path(path)))
    scripts = json.loads(output)["data"]["attributes"].get("environment") or {}
    return {name: value for script in scripts.values() for name, value in _EXPORT.findall(script)}


@functools.lru_cache(maxsize=64)
def _image(file: Path, name: str, changed: int) -> Image:
    """Return an image from its record or its file in Apptainer's format, with the file's modification time."""
    if file.name == _RECORD:
        layers: tuple[Path, ...] = (file.with_name(ROOT),)
        stored: dict[str, Any] = json.loads(file.read_bytes())
        env, command, size_mb, volumes = stored["env"], stored["command"], stored["size_mb"], stored["volumes"]
        own = stored["id"]
    else:
        with file.open("rb") as opened:
            own = uuid.UUID(bytes=opened.read(_SIF_ID.stop)[_SIF_ID]).hex
        env, command, size_mb, volumes, layers = variables_of(file), (RUNSCRIPT,), file.stat().st_size >> 20, (), ()
    return Image(f"{own}#{name}", (name,), env, tuple(command), size_mb, tuple(volumes), layers)


def variables(home: Path, agent_variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a call that starts a container with variables, which stay invisible in process lists.

    Args:
        home: A folder for Apptainer's user files.
        agent_variables: The container's variables.
    """
    inherited = {name: os.environ[name] for name in _KEPT if name in os.environ}
    home = plain_path(home)
    own = {f"APPTAINERENV_{name}": value for name, value in agent_variables.items() if name != "HOME"}
    return {**inherited, "HOME": str(home), "APPTAINER_CACHEDIR": str(home), "APPTAINER_TMPDIR": str(home), **own}


def exec_command(spec: Container, image: Path, home: Path, overlay: Path | None = None) -> list[str]:
    """Return the command line that starts a container.

    Args:
        spec: The container to start.
        image: The file or folder of its image.
        home: A folder for the system call filter.
        overlay: A folder for the container's changes to its own files; None if they are read-only.
    """
    root = os.getuid() == 0
    # Without root, they are counted in the container's own namespace; otherwise together with all others of that user.
    processes = spec.processes + (_ROOTS_PROCESSES if root else _OWN_THREADS)
    return [
        *("apptainer", "--silent", "exec"),
        *CONTAINED,
        *filtered(home),
        *("--hostname=sandbox", "--drop-caps=all"),
        *(
            [f"--security={kind}:{number}" for kind, number in zip(("uid", "gid"), spec.user, strict=True)]
            if root
            else []
        ),
        *(f"--mount={bind.line()}" for bind in (*spec.binds, *find_gpus(spec.gpus).binds())),
        *([f"--overlay={plain_path(overlay)}"] if overlay else []),
        f"--pwd={spec.working_dir or '/'}",
        *shlex.split(os.environ.get(OPTIONS_VARIABLE, "")),
        str(image),
        *("/bin/sh", "-c", _INIT, "sh", str(processes), spec.environment["HOME"]),
        *spec.entrypoint,
        *spec.command,
    ]


def filtered(home: Path) -> list[str]:
    """Return options that drop all privileges, and filter system calls using Apptainer's own profile, if it has one.

    Refused calls return the same error as from a kernel without them (a seccomp trace without a tracer), because
    programs try newer calls first and give up on any other error. Some newer calls, which are harmless, are missing
    from the profile and are added.
    """
    profile = seccomp_profile()
    if profile is None:
        return ["--no-privs"]
    content = json.loads(profile.read_bytes())
    content["defaultAction"] = "SCMP_ACT_TRACE"
    for rule in content["syscalls"]:
        if not rule.get("includes"):
            rule["names"] = [name for name in rule["names"] if name not in _NAMESPACE_CALLS]
    content["syscalls"].append({"names": _NEWER_CALLS, "action": "SCMP_ACT_ALLOW"})
    (home / "seccomp.json").write_text(json.dumps(content), encoding="utf-8")
    return ["--no-privs", f"--security=seccomp:{plain_path(home) / 'seccomp.json'}"]


@functools.cache
def seccomp_profile() -> Path | None:
    """Return the path of Apptainer's system call filter."""
    output = call("Apptainer does not report where its files are", "buildcfg")
    folder = next(line.partition("=")[2] for line in output.splitlines() if line.startswith("APPTAINER_CONFDIR="))
    profile = Path(folder, "seccomp-profiles", "default.json")
    return profile if profile.exists() else None
