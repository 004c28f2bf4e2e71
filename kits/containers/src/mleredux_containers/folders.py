"""What is mounted into a container, and who may read and write it there."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shlex
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mleredux._core.sandboxes.volume import UNLIMITED, find_disk
from mleredux.errors import SandboxError
from mleredux.plugin.files import open_below, plain_path
from mleredux.plugin.sandbox import Launch

UNPRIVILEGED = 65532
"""User and group of agents where root starts them; no user of the host's."""
INSIDE = "/mleredux/inside"
SOCKET = "/mleredux/socket"
_OURS = {"/dev", "/proc", "/sys", "/tmp", "/task", "/output", "/mleredux"}
_LONGEST = 1 << 20
_PLAIN = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    "group": "root:x:0:\nnogroup:x:65534:",
}
"""For images whose own files can't be read here: of an engine on another machine, say."""
_MOST_STAND_INS = 64
_MOST_LOOKED_AT = 1000


@dataclass(frozen=True)
class Bind:
    """A host path as it is seen in the container."""

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
    """Make the launch's folders usable by the agent's user, and say what is mounted where.

    Raises:
        SandboxError: The agent's user could not read the task, or there is more than one folder of sockets.
    """
    staging = launch.staging_dir or launch.control_dir
    inside = write_inside(staging)
    if os.getuid() == 0:
        for folder in (launch.output_dir, launch.scratch_dir):
            _give(folder, user)
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
        # Else the entry point copies them: some of MLE-bench's agents edit theirs in place.
        names = ("instructions.txt", "instructions_obfuscated.txt")
        binds += [Bind(instructions, f"/home/{name}") for name in names]
    # The folder, not the sockets: after a restart of the program new ones of these names must be seen.
    homes = {place.parent for place in _sockets(launch) if place is not None}
    if len(homes) > 1:
        raise SandboxError("The sockets of a run are in several folders.", hint="Pass sockets of one folder.")
    binds += [Bind(home, SOCKET) for home in homes]
    return binds


def user_entries(layers: Sequence[Path], user: tuple[int, int], folder: Path) -> list[Bind]:
    """Return files that replace `/etc/passwd` and `/etc/group` of an image, with an entry for the agent's user.

    Args:
        layers: The engine's folders of the image's layers, the uppermost first.
        user: User and group id of the agent.
        folder: Where to write them.
    """
    entries = {
        "passwd": f"agent:x:{user[0]}:{user[1]}:agent:/tmp:/bin/sh\n",
        "group": f"agent:x:{user[1]}:\n",
    }
    binds = []
    for name, entry in entries.items():
        content = _file_of(layers, f"etc/{name}") or _PLAIN[name]
        written = folder / name
        # The first entry of an id or a name counts: the image's own may name a home that can't be written.
        written.write_text(f"{entry}{content.rstrip()}\n", encoding="utf-8")
        written.chmod(0o644)
        binds.append(Bind(written, f"/etc/{name}"))
    return binds


def _file_of(layers: Sequence[Path], path: str) -> str | None:
    """Return the text of an image's file, as far as the engine's layers can be read here."""
    for layer in layers:
        # A link would lead to this machine's files.
        with contextlib.suppress(OSError), open_below(layer, path) as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    return None


def written_binds(
    launch: Launch, layers: Sequence[Path], volumes: Sequence[str], agent_dir: str | None
) -> list[Bind] | None:
    """What an agent may write of its image's own files, on the disk of its run.

    Where that can't be (no volume, an engine that does not tell where it has its layers), such writes are not limited,
    which is noted for the ledger.

    Args:
        launch: What is started.
        layers: The engine's folders of the image's layers, the uppermost first.
        volumes: Paths that the image declares as volumes.
        agent_dir: The agent's folder in an image made for MLE-bench.

    Returns:
        The mounts; None where there are to be none of these.
    """
    paths = {path.rstrip("/") for path in (*volumes, agent_dir or "/")} - {""}
    if not paths and not launch.agent.build.writable_root:
        return None
    try:
        if not layers:
            raise OSError("the engine reports no layers")
        root = find_disk(launch.control_dir.parent).image_root(layers)
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
    """A folder of an image by its path there, made where it lacks; None where that is a link or no folder."""
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
    """The files that run in the container, executable whatever the umask and the installer made of them."""
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
    """`/home/data`, which for MLE-bench's agents holds the description beside the data."""
    description = launch.task_dir / "description.md"
    plain = [Bind(launch.data_dir, "/home/data")]
    if not description.is_file():
        return plain
    if (launch.data_dir / "description.md").is_file():
        # The task's own text hides the data's: it may be the obfuscated one.
        shown = [Bind(description, f"{where}/description.md") for where in ("/task/data", "/home/data")]
        return plain + shown
    entries = [entry for entry in sorted(launch.data_dir.iterdir()) if not entry.is_symlink()]
    if len(entries) > _MOST_STAND_INS:
        return plain
    # A mount needs something to be mounted on, and nothing may be written into the data's own folder.
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
    """A folder that is mounted by itself; an earlier attempt may have left a link in its place."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.rename(folder.with_name(f"{folder.name}.replaced"))
    folder.mkdir(exist_ok=True)
    if os.getuid() == 0:
        os.chown(folder, *user)


def _give(folder: Path, user: tuple[int, int]) -> None:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(Path(parent) / name, *user)
    os.chown(folder, *user)


def _refuse_unreadable(folder: Path, user: tuple[int, int]) -> None:
    """Root can read everything, the agent's user can't; better said now than as the agent's riddle."""
    looked = 0
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent), *(Path(parent) / name for name in files)):
            if not _readable(path.lstat(), user):
                raise SandboxError(
                    f"{path} can't be read by the agent's user ({user[0]}:{user[1]}) in the container.",
                    hint=f"Allow it: `chmod -R o+rX {shlex.quote(str(folder))}`.",
                )
            looked += 1
        if looked > _MOST_LOOKED_AT:
            return
        folders.sort()


def _readable(status: os.stat_result, user: tuple[int, int]) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return True
    shift = 6 if status.st_uid == user[0] else 3 if status.st_gid == user[1] else 0
    needed = 5 if stat.S_ISDIR(status.st_mode) else 4
    return (status.st_mode >> shift) & needed == needed
