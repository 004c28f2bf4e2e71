"""A control group for a confined program, which limits its total memory, including kernel memory, and its processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NAME = "mleredux-confined-"
_CONTROLLERS = ("memory", "pids")
_REMOVE_SECONDS = 5.0


@dataclass(frozen=True)
class ControlGroup:
    """Open files of a control group.

    Attributes:
        join: A process that writes `0` to each of them becomes a member.
        events: Contains a line `oom_kill N`: the number of processes killed for lack of memory.
    """

    join: tuple[int, ...]
    events: int


@contextlib.contextmanager
def control_group(memory_mb: int, processes: int) -> Iterator[ControlGroup | None]:
    """Create a control group with limits, and remove it at the end, when it has no more processes.

    Args:
        memory_mb: Memory limit in MiB.
        processes: Maximum number of processes.

    Yields:
        The group; None if this process may not create one.
    """
    group: ControlGroup | None = None
    folders: list[Path] = []
    for parents in _parents():
        with contextlib.suppress(OSError):
            group = _make(parents, folders, memory_mb, processes)
            break
        _remove(folders)
    try:
        yield group
    finally:
        for file in (*group.join, group.events) if group else ():
            os.close(file)
        _remove(folders)


def _make(parents: list[Path], folders: list[Path], memory_mb: int, processes: int) -> ControlGroup:
    for parent in parents:
        _sweep(parent)
        folders.append(parent / f"{_NAME}{os.getpid()}-{os.urandom(4).hex()}")
        folders[-1].mkdir()
    memory, most = folders[0], str(memory_mb * 2**20)
    first = (memory / "memory.limit_in_bytes").exists()
    (memory / ("memory.limit_in_bytes" if first else "memory.max")).write_text(most)
    for name, value in (
        ("memory.kmem.tcp.limit_in_bytes", most),
        ("memory.memsw.limit_in_bytes", most),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
    ):
        with contextlib.suppress(OSError):  # not every kernel offers all of them
            if (file := memory / name).exists():
                file.write_text(value)
    if (file := folders[-1] / "pids.max").exists():
        file.write_text(str(processes))
    events = os.open(memory / ("memory.oom_control" if first else "memory.events"), os.O_RDONLY)
    return ControlGroup(tuple(os.open(folder / "cgroup.procs", os.O_WRONLY) for folder in folders), events)


def _parents() -> Iterator[list[Path]]:
    """Yield groups under which a group could be created, by controller (the same in version 2), the nearest first."""
    try:
        lines = [line.split(":", 2) for line in _OWN.read_text().splitlines()]
    except OSError:
        return
    own = {name: path.lstrip("/") for _, names, path in lines for name in names.split(",")}
    if "memory" in own:
        known = [name for name in _CONTROLLERS if name in own]
        yield [_GROUPS / name / own[name] for name in known]
        yield [_GROUPS / name for name in known]  # in a container, its own group is mounted as the root
    elif "" in own:
        place = _GROUPS / own[""]
        for folder in (place, *place.parents):
            with contextlib.suppress(OSError):
                if {*_CONTROLLERS} <= {*(folder / "cgroup.subtree_control").read_text().split()}:
                    yield [folder]


def _sweep(parent: Path) -> None:
    """Remove the groups left by processes that were killed before they could remove them."""
    for folder in parent.glob(f"{_NAME}*"):
        owner = folder.name.removeprefix(_NAME).partition("-")[0]
        if not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


def _remove(folders: list[Path]) -> None:
    until = time.monotonic() + _REMOVE_SECONDS
    while folders and time.monotonic() < until:
        for folder in list(folders):
            with contextlib.suppress(OSError):
                if folder.exists():
                    folder.rmdir()
                folders.remove(folder)
        if folders:
            time.sleep(0.01)
    folders.clear()
