"""The mounts of a container, and its user's permissions on them; files of an image that contain a task's known answers
are hidden by mounting an unreadable file over each of them.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mleredux._core.sandboxes.mounts import mount_overlay
from mleredux._core.sandboxes.volume import PLACE, UNLIMITED, RunDisk, find_disk
from mleredux.errors import SandboxError
from mleredux.plugin.files import open_below, plain_path
from mleredux.plugin.sandbox import Launch
from mleredux_programs.known_files import KnownFiles, tree_files

UNPRIVILEGED = 65532
"""User and group id of agents that root starts; no user of the host has it."""
INSIDE = "/mleredux/inside"
SOCKET = "/mleredux/socket"
_OURS = {"/dev", "/proc", "/sys", "/tmp", "/task", "/output", "/mleredux"}
_LONGEST = 1 << 20
_PLAIN = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    "group": "root:x:0:\nnogroup:x:65534:",
}
"""Entries for images whose own files can't be read here, for example because the engine is on another machine."""
_MOST_STAND_INS = 64
_MOST_CHECKED = 1000


@dataclass(frozen=True)
class Bind:
    """A host path and its path in the container."""

    source: Path
    """The path on the host."""
    target: str
    """The path in the container."""
    writable: bool = False
    """Whether the container may write to it."""

    def line(self) -> str:
        """Return the value of `--mount` for Podman and Apptainer; not every version reads it as CSV."""
        line = io.StringIO()
        fields = ["type=bind", f"source={plain_path(self.source.resolve())}", f"destination={self.target}"]
        csv.writer(line, lineterminator="").writerow([*fields, *([] if self.writable else ["ro"])])
        return line.getvalue()


def agent_user(rootless: bool = False) -> tuple[int, int]:
    """Return the user and group id of the agent in the container.

    Args:
        rootless: Whether the engine runs without root; its containers' root is then the caller.
    """
    if rootless:
        return 0, 0
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def prepare_folders(launch: Launch, user: tuple[int, int]) -> list[Bind]:
    """Make the launch's folders usable by the agent's user, and return their mounts.

    Raises:
        SandboxError: The agent's user can't read the task, or there is more than one folder of sockets.
    """
    staging = launch.staging_dir or launch.control_dir
    inside = write_inside(staging)
    if os.getuid() == 0:
        for folder in (launch.output_dir, launch.scratch_dir):
            _change_owner(folder, user)
        _refuse_unreadable(launch.task_dir, user)
        _refuse_unreadable(launch.data_dir, user)
    for name in ("code", "logs"):
        _own_folder(launch.output_dir / name, user)
    binds = [
        Bind(launch.task_dir, "/task"),
        Bind(launch.data_dir, "/task/data"),
        Bind(launch.output_dir, "/output", writable=True),
        Bind(launch.scratch_dir, "/tmp", writable=True),
        Bind(inside, INSIDE),
        Bind(inside / "validate.sh", "/usr/local/bin/mleredux-validate"),
        Bind(inside / "validate.sh", "/home/validate_submission.sh"),
        Bind(launch.output_dir, "/home/submission", writable=True),
        Bind(launch.output_dir / "code", "/home/code", writable=True),
        Bind(launch.output_dir / "logs", "/home/logs", writable=True),
        *_home_data(launch, staging),
    ]
    instructions = launch.task_dir / "instructions.md"
    if instructions.is_file() and not launch.agent.build.writable_root:
        # Otherwise the entry point copies them: some of MLE-bench's agents edit their files in place.
        names = ("instructions.txt", "instructions_obfuscated.txt")
        binds += [Bind(instructions, f"/home/{name}") for name in names]
    # Mount the folder, not the sockets: after a restart of the program, the container must see its new sockets.
    homes = {place.parent for place in _sockets(launch) if place is not None}
    if len(homes) > 1:
        raise SandboxError("The sockets of a run are in several folders.", hint="Pass sockets from one folder.")
    binds += [Bind(home, SOCKET) for home in homes]
    return binds


def user_entries(layers: Sequence[Path], user: tuple[int, int], folder: Path) -> list[Bind]:
    """Return mounts that replace `/etc/passwd` and `/etc/group` of an image, with an entry for the agent's user.

    Args:
        layers: The engine's folders of the image's layers, the uppermost first.
        user: User and group id of the agent.
        folder: The folder to write these files to.
    """
    entries = {
        "passwd": f"agent:x:{user[0]}:{user[1]}:agent:/tmp:/bin/sh\n",
        "group": f"agent:x:{user[1]}:\n",
    }
    binds = []
    for name, entry in entries.items():
        content = _file_of(layers, f"etc/{name}") or _PLAIN[name]
        written = folder / name
        # The first entry of an id or a name counts: the image's own entry may name a home that is not writable.
        written.write_text(f"{entry}{content.rstrip()}\n", encoding="utf-8")
        written.chmod(0o644)
        binds.append(Bind(written, f"/etc/{name}"))
    return binds


def _file_of(layers: Sequence[Path], path: str) -> str | None:
    """Return the text of an image's file; None if the engine's layers can't be read here."""
    for layer in layers:
        # A link would point to this machine's files.
        with contextlib.suppress(OSError), open_below(layer, path) as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    return None


def _image_root(disk: RunDisk, layers: Sequence[Path]) -> Path:
    """Return a folder with the files of an image; writes to it go to the disk of the run, and persist.

    Args:
        disk: The disk of the run.
        layers: The folders of the image's layers, the uppermost first.

    Raises:
        OSError: The layers can't be mounted, or the disk is not a volume.
    """
    if disk.enforced_by != "volume":
        raise OSError("is not a volume")
    key = hashlib.sha256("\0".join(map(str, layers)).encode()).hexdigest()[:16]
    changes, place = (disk.path / PLACE / ".image" / key / name for name in ("changes", "root"))
    for folder in (changes, changes.with_name("work"), place):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.path.ismount(place):
        mount_overlay(place, layers, upperdir=changes, workdir=changes.with_name("work"))
    return place


def written_binds(
    launch: Launch, layers: Sequence[Path], volumes: Sequence[str], agent_dir: str | None
) -> list[Bind] | None:
    """Return mounts that make folders of the image writable, on the disk of the run.

    If that is impossible (no volume, or an engine that does not report its layers), such writes are not limited, and
    this is recorded as a trust signal.

    Args:
        launch: The launch of the agent.
        layers: The engine's folders of the image's layers, the uppermost first.
        volumes: Paths that the image declares as volumes.
        agent_dir: The agent's folder in an image made for MLE-bench.

    Returns:
        The mounts; None if no folder of the image is mounted.
    """
    paths = {path.rstrip("/") for path in (*volumes, agent_dir or "/")} - {""}
    if not paths and not launch.agent.build.writable_root:
        return None
    try:
        if not layers:
            raise OSError("the engine reports no layers")
        root = _image_root(find_disk(launch.control_dir.parent), layers)
    except OSError:
        (launch.control_dir / UNLIMITED).touch()
        return None
    if launch.agent.build.writable_root:
        paths = _folders(root, "") - _OURS
        if (programs := root / "sbin").is_symlink():  # engines put their init there, which must stay visible
            above = str(programs.readlink()).strip("/").partition("/")[0]
            paths = paths - {f"/{above}"} | _folders(root, f"/{above}") - {f"/{above}/sbin"}
        paths -= {"/sbin"}
    return [Bind(below, path, writable=True) for path in sorted(paths) if (below := _below(root, path)) is not None]


def _folders(root: Path, path: str) -> set[str]:
    with os.scandir(f"{root}{path}") as entries:
        return {f"{path}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)}


def _below(root: Path, path: str) -> Path | None:
    """Return a folder of an image, created if it is missing; None if the path has a link or a file in it."""
    here = root
    for name in path.strip("/").split("/"):
        here = here / name
        if name in ("", ".", "..") or here.is_symlink() or (here.exists() and not here.is_dir()):
            return None
        here.mkdir(exist_ok=True)
    return here


def _sockets(launch: Launch) -> tuple[Path | None, ...]:
    return launch.validate_socket, launch.gateway_socket, launch.proxy_socket


def write_inside(control: Path) -> Path:
    """Write the programs that run in containers, executable regardless of umask and installer; return their
    folder.
    """
    folder = control / "inside"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for item in resources.files("mleredux_containers").joinpath("inside").iterdir():
        if item.name.endswith((".sh", ".py")):
            copy = folder / item.name
            copy.write_bytes(item.read_bytes())
            copy.chmod(0o755)
    return folder


def _home_data(launch: Launch, staging: Path) -> list[Bind]:
    """Return mounts for `/home/data`, where MLE-bench's agents expect the description next to the data."""
    description = launch.task_dir / "description.md"
    plain = [Bind(launch.data_dir, "/home/data")]
    if not description.is_file():
        return plain
    if (launch.data_dir / "description.md").is_file():
        # The task's description, which may be obfuscated, hides that of the data.
        shown = [Bind(description, f"{where}/description.md") for where in ("/task/data", "/home/data")]
        return plain + shown
    entries = [entry for entry in sorted(launch.data_dir.iterdir()) if not entry.is_symlink()]
    if len(entries) > _MOST_STAND_INS:
        return plain
    # A mount needs an existing mount point, and nothing may be written into the data folder itself.
    stand_in = staging / "home-data"
    shutil.rmtree(stand_in, ignore_errors=True)
    stand_in.mkdir()
    stand_in.chmod(0o755)
    for entry in (*entries, description):
        place = stand_in / entry.name
        place.mkdir() if entry.is_dir() else place.touch()
    shown = [Bind(entry, f"/home/data/{entry.name}") for entry in (*entries, description)]
    return [Bind(stand_in, "/home/data"), *shown]


def _own_folder(folder: Path, user: tuple[int, int]) -> None:
    """Create a folder to mount for the agent's user; an earlier attempt may have replaced it with a link."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.rename(folder.with_name(f"{folder.name}.replaced"))
    folder.mkdir(exist_ok=True)
    if os.getuid() == 0:
        os.chown(folder, *user)


def _change_owner(folder: Path, user: tuple[int, int]) -> None:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(Path(parent) / name, *user)
    os.chown(folder, *user)


def _refuse_unreadable(folder: Path, user: tuple[int, int]) -> None:
    """Raise an error early if the agent's user, unlike root, can't read a folder."""
    checked = 0
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent), *(Path(parent) / name for name in files)):
            if not _readable(path.lstat(), user):
                raise SandboxError(
                    f"{path} can't be read by the agent's user ({user[0]}:{user[1]}) in the container.",
                    hint=f"Allow it: `chmod -R o+rX {shlex.quote(str(folder))}`.",
                )
            checked += 1
        if checked > _MOST_CHECKED:
            return
        folders.sort()


def _readable(status: os.stat_result, user: tuple[int, int]) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return True
    shift = 6 if status.st_uid == user[0] else 3 if status.st_gid == user[1] else 0
    needed = 5 if stat.S_ISDIR(status.st_mode) else 4
    return (status.st_mode >> shift) & needed == needed


FIND = ("/bin/sh", "-c", "command -v find >/dev/null || exit 127; find / -xdev -type f 2>/dev/null; exit 0")
"""The command that lists an image's files from inside a container."""
_known_files: dict[tuple[str, tuple[str, ...]], list[str]] = {}


def withheld_binds(launch: Launch, image: str, layers: Sequence[Path], listed: Callable[[], str]) -> Iterator[Bind]:
    """Yield mounts that hide the files of an image that contain known answers of a launch's task.

    Args:
        launch: The launch of the agent.
        image: The image's id.
        layers: The engine's folders of its layers, the uppermost first.
        listed: Returns the output of `FIND` in the image, if the engine does not show its layers here.
    """
    if not launch.known_answers:
        return
    empty = (launch.staging_dir or launch.control_dir) / "withheld"
    empty.touch()
    empty.chmod(0)
    key = image, launch.known_answers
    if key not in _known_files:
        shown = {path for layer in _shown(layers) for path in tree_files(layer)}
        _known_files[key] = KnownFiles(launch.known_answers).within(shown or listed().splitlines())
    for path in _known_files[key]:
        yield Bind(empty, path)


def _shown(layers: Sequence[Path]) -> Sequence[Path]:
    """Return the layers if all of them can be read here, else nothing."""
    return layers if all(os.access(layer, os.R_OK | os.X_OK) for layer in layers) else []
