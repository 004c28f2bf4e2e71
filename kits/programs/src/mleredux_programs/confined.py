"""Execute an untrusted program, such as a submitted script, during grading.

The program runs in separate Linux namespaces: no network, no files but its inputs and the interpreter's, no processes
of this machine, no privileges, and limits on time, memory, processes and disk. It shares the kernel; this is not a
virtual machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from mleredux._core.data.installation import salt_path
from mleredux._core.forkserver import ONE_THREAD
from mleredux._core.locations import cache_dir, default_data_dir
from mleredux._core.store.runs import default_runs_dir
from mleredux.errors import SandboxError

from mleredux_programs import confined_child
from mleredux_programs.control_group import ControlGroup, control_group
from mleredux_programs.known_files import KnownFiles

_AT_EUID, _AT_EGID = 12, 14
_PROCESSES = 64
_SIGNALS = 1_024
_SHOWN_BYTES = 4_000
_GRACE_SECONDS = 30


@dataclass(frozen=True)
class Confined:
    """How a confined program ended.

    Attributes:
        code: The exit code (128 plus the number of a signal that ended it); None if it exceeded a limit.
        log: The end of its output.
        files: The requested files that it has written, by name.
        limit: The limit that it exceeded, for which it was killed.
    """

    code: int | None
    log: str
    files: dict[str, bytes] = field(default_factory=dict)
    limit: Literal["time", "memory"] | None = None


def run_confined(
    arguments: Iterable[str],
    inputs: Mapping[str, bytes],
    outputs: Iterable[str],
    *,
    seconds: float = 60.0,
    memory_mb: int = 2_048,
    disk_mb: int = 256,
    variables: Mapping[str, str] | None = None,
    hidden: Iterable[str] = (),
    known_answers: Iterable[str] = (),
    private: Iterable[Path] = (),
    load: Mapping[str, Any] | None = None,
    talk: Callable[[BinaryIO, BinaryIO], None] | None = None,
) -> Confined:
    """Run this interpreter with its packages, confined, in a folder with the inputs.

    Args:
        arguments: Arguments of the interpreter, such as `["script.py"]`.
        inputs: Contents by file name.
        outputs: Names of the files to return, each at most `disk_mb` large; links and folders are not returned.
        seconds: Limit on the wall time, and on the CPU time of each process.
        memory_mb: Limit on the data memory in MiB, of each process and of all together. Together with `disk_mb`, it
            also limits kernel memory: with a control group if this process may create one, else by counting.
        disk_mb: Limit in MiB on the total size of all files, which are kept in memory.
        variables: Environment variables of the program.
        hidden: Folders of packages that are empty for the program.
        known_answers: Functions of libraries whose data files it can't read (`Task.known_answers`), wherever they are.
        private: Folders that are empty for the program, if they are next to the interpreter's files. The same applies
            to all data, runs and caches of mleredux there, and to packages of other environments.
        load: Requests to send if the program is a service; the file `load.json` is returned (module `load`).
        talk: Called with the ends of two pipes, to read from and to write to. The program has the other ends, whose
            descriptors are added to its arguments in the same order. The pipes are closed when it returns.

    Raises:
        SandboxError: This machine does not allow processes to be confined.
    """
    with tempfile.TemporaryDirectory(prefix="mleredux-confined-") as name:
        folder = Path(name)
        for part in ("inputs", "results", "root"):
            (folder / part).mkdir()
        for path, content in inputs.items():
            (folder / "inputs" / path).write_bytes(content)
        pipes = [*os.pipe(), *os.pipe()] if talk is not None else []
        theirs, ours = pipes[::3], pipes[1:3]
        readable = _readable()
        request = {
            "command": [sys.executable, "-I", "-B", *arguments, *map(str, theirs)],
            "env": {"PATH": "/usr/bin", "HOME": "/job", "TMPDIR": "/job", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
            | ONE_THREAD
            | dict(variables or {}),
            "inputs": str(folder / "inputs"),
            "results": str(folder / "results"),
            "report": str(folder / "report.json"),
            "root": str(folder / "root"),
            "readable": readable,
            "hidden": [
                *(path for path in hidden if any(f"{path}/".startswith(f"{parent}/") for parent in readable)),
                *hidden_paths(
                    readable,
                    KnownFiles(known_answers),
                    (*private, cache_dir(), default_data_dir(), default_runs_dir(), salt_path().parent),
                    site.getsitepackages(),
                ),
            ],
            "outputs": list(outputs),
            "output_bytes": disk_mb * 2**20,
            "seconds": seconds,
            "disk_mb": disk_mb,
            "memory_mb": memory_mb,
            "load": None if load is None else {**load, "module": str(Path(__file__).parent)},
            "pipes": theirs,
            "limits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": int(seconds) + 1,
                "RLIMIT_DATA": memory_mb * 2**20,
                "RLIMIT_FSIZE": disk_mb * 2**20,
                "RLIMIT_NPROC": _PROCESSES,
                "RLIMIT_NOFILE": 256,
                "RLIMIT_SIGPENDING": _SIGNALS,
                "RLIMIT_MSGQUEUE": 0,
                "RLIMIT_MEMLOCK": 0,
            },
        }
        # One more for the first process, which is ours.
        with control_group(memory_mb + disk_mb, _PROCESSES + 1) as group:
            request["group"] = None if group is None else asdict(group)
            (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
            log = _executed(folder, seconds + _GRACE_SECONDS, theirs, ours, talk, group)
        report_file = folder / "report.json"
        reported = report_file.read_bytes() if report_file.exists() else b""
        report: dict[str, Any] = json.loads(reported or b'{"code": null, "limit": "time"}')
        if "unconfined" in report:
            raise SandboxError(
                f"Programs can't be confined on this machine: {report['unconfined']}.",
                hint="Use a Linux machine that allows namespaces, or grade as root.",
            )
        files = {path.name: path.read_bytes() for path in (folder / "results").iterdir()}
        return Confined(report["code"], log, files, report["limit"])


def _map_user() -> None:
    """Map the user of this process to itself, if the process is in a user namespace where it has no user id, as the
    child that scores is. A process without a user id can't create a namespace; the kernel provides the id that the
    process had at its start (`getauxval`).
    """
    if Path("/proc/self/uid_map").read_text().strip():
        return
    known = ctypes.CDLL(None).getauxval
    known.restype = ctypes.c_ulong
    user, group = known(_AT_EUID), known(_AT_EGID)
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, content in maps.items():
        with contextlib.suppress(OSError):  # then the child reports that it can't be confined
            Path("/proc/self", name).write_text(content)


def _executed(
    folder: Path,
    seconds: float,
    theirs: Sequence[int],
    ours: Sequence[int],
    talk: Callable[[BinaryIO, BinaryIO], None] | None,
    group: ControlGroup | None,
) -> str:
    """Run the child, and return the end of its log."""
    if sys.platform != "linux":
        (folder / "report.json").write_text(json.dumps({"unconfined": f"{sys.platform} has no namespaces"}))
        return ""
    _map_user()
    with (folder / "log").open("w+b") as log:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", confined_child.__file__, str(folder / "request.json")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={},
            pass_fds=[*theirs, *((*group.join, group.events) if group else ())],
        )
        for pipe in theirs:
            os.close(pipe)
        try:
            if talk is not None:
                tell, read_end = ours
                with (
                    contextlib.suppress(BrokenPipeError),
                    os.fdopen(read_end, "rb") as replies,
                    os.fdopen(tell, "wb") as requests,
                ):
                    talk(replies, requests)
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            child.kill()
            child.wait()
        log.seek(max(0, log.seek(0, os.SEEK_END) - _SHOWN_BYTES))
        return log.read().decode(errors="replace").strip()


def _readable() -> list[str]:
    """Return the folders of the interpreter and of system libraries, without nested ones, links first."""
    wanted = {"/lib", "/lib64", "/usr", *(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix))}
    folders = sorted(path for path in wanted if Path(path).is_dir())
    return [path for path in folders if not any(path.startswith(f"{other}/") for other in folders)]


_RUN, _RUNS, _MAKING, _PRIVATE = "events.jsonl", "index.sqlite", ".making-", "prepared/private"
_PACKAGES = ("site-packages", "dist-packages")
_MOST_FOLDERS = 50_000
_SETTLED_SECONDS = 2.0
"""A folder may change again within a tick of its file system's clock: it is remembered only some time later."""


def hidden_paths(
    roots: Iterable[str], known: KnownFiles, private: Iterable[Path], packages: Iterable[str]
) -> Iterator[str]:
    """Yield folders and files of trees that must be hidden from anyone who sees the trees.

    These are data prepared by mleredux, runs, private folders under other names, known answers, and packages of other
    environments.

    Args:
        roots: The trees; links in them are not followed.
        known: Known answers.
        private: Private folders.
        packages: Package folders to keep visible.
    """
    kept = {os.path.realpath(path) for path in packages}
    secret = set()
    for folder in private:
        with contextlib.suppress(OSError):
            facts = folder.stat()
            secret.add((facts.st_dev, facts.st_ino))
    beside = tuple(f"/{folder}" for folder in known.folders)
    pending = [root for root in roots if not Path(root).is_symlink()]
    tops = frozenset(pending)
    while pending:
        path = pending.pop()
        with contextlib.suppress(OSError):
            facts, name = os.lstat(path), path.rpartition("/")[2]
            if path not in tops and (
                name.startswith(_MAKING)
                or (name in _PACKAGES and not _is_part(os.path.realpath(path), kept))
                or path.endswith(beside)
                or (facts.st_dev, facts.st_ino) in secret
            ):
                yield path
                continue
            listed = _listed if time.time() - facts.st_ctime > _SETTLED_SECONDS else _listed.__wrapped__
            files, folders, is_run = listed(path, facts.st_dev, facts.st_ino, facts.st_ctime_ns)
            if path not in tops and (is_run or (f"{path}/prepared" in folders and Path(path, _PRIVATE).is_dir())):
                yield path
                continue
            yield from known.among(path, files)
            pending += folders


@functools.lru_cache(_MOST_FOLDERS)
def _listed(path: str, *_state: int) -> tuple[str, tuple[str, ...], bool]:
    """Return names of a folder's files, separated by `\\0`, paths of its folders, and whether it is a run or has runs.

    Links are omitted. The state says when the folder has changed, so that a process lists it again only then.
    """
    with os.scandir(path) as entries:
        kinds = {entry: entry.is_dir(follow_symlinks=False) for entry in entries if not entry.is_symlink()}
    files = "\0".join(entry.name for entry, is_folder in kinds.items() if not is_folder)
    folders = tuple(entry.path for entry, is_folder in kinds.items() if is_folder)
    return files, folders, any(entry.name in (_RUN, _RUNS) for entry in kinds)


def _is_part(path: str, kept: Iterable[str]) -> bool:
    return any(f"{other}/".startswith(f"{path}/") or path.startswith(f"{other}/") for other in kept)
