"""A container's control group, read without podman: what it uses, and whether its memory ran out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mleredux.plugin.container import OWN_PROCESSES
from mleredux.plugin.sandbox import Usage

_ROOT = Path("/sys/fs/cgroup")
_NOTIFY_SECONDS, _KILLED_SECONDS, _POLL_SECONDS = 1.0, 10.0, 0.05


class ControlGroup:
    """The control group of a process; where that is gone, nothing is known.

    Args:
        pid: The container's first process.
    """

    def __init__(self, pid: int) -> None:
        self._parts: dict[str, Path] = {}
        self._events: int | None = None
        self._killed_before = False
        with suppress(OSError):
            self._parts = parts_of(pid)
            if (self._parts["memory"] / "cgroup.event_control").exists():
                self._events = _watch(self._parts["memory"])
                self._killed_before = _kills(self._parts["memory"]) > 0

    def usage(self) -> Usage:
        """Resources used so far."""
        try:
            memory, processes = self._parts["memory"], self._parts["pids"]
            first = "memory.current" if (memory / "memory.current").exists() else "memory.usage_in_bytes"
            # File pages that the kernel gives back at need don't count; the name differs in cgroup version 2.
            detail = dict(line.split() for line in (memory / "memory.stat").read_text().splitlines())
            cached = int(detail.get("total_inactive_file", detail.get("inactive_file", 0)))
            return Usage(
                memory_mb=(int((memory / first).read_text()) - cached) / (1 << 20),
                cpu_seconds=_cpu_seconds(self._parts["cpuacct"]),
                processes=max(0, int((processes / "pids.current").read_text()) - OWN_PROCESSES),
            )
        except (OSError, KeyError, ValueError):
            return Usage()

    def ran_out_of_memory(self, killed: bool) -> bool:
        """Whether the kernel ended a process for want of memory, in version 1, where podman may not see it.

        Args:
            killed: Whether SIGKILL ended the agent: a busy machine may count the events late, which is waited for.
        """
        if self._killed_before or self._events is None:
            return self._killed_before
        found = _count(self._events)
        if self._parts["memory"].exists():
            return found > 0
        until = time.monotonic() + (_KILLED_SECONDS if killed else _NOTIFY_SECONDS)
        while found <= 1 and time.monotonic() < until:  # the group's removal counts as one too, a little later
            time.sleep(_POLL_SECONDS)
            found += _count(self._events)
        return found > 1

    def close(self) -> None:
        """Watch no longer."""
        if self._events is not None:
            os.close(self._events)
            self._events = None


@contextmanager
def limited_group(processes: int) -> Iterator[list[str]]:
    """Options of a build whose steps have so many processes in all, from their start; none without root."""
    second = (_ROOT / "cgroup.controllers").exists()
    name = f"mleredux-build-{os.getpid()}-{os.urandom(4).hex()}"
    group = (_ROOT if second else _ROOT / "pids") / name
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
    except OSError:
        with suppress(OSError):
            group.rmdir()  # made, but its controller is not enabled there (version 2)
        yield []
        return
    try:
        yield [f"--cgroup-parent=/{name}/steps"]
    finally:
        for top in [_ROOT] if second else _ROOT.iterdir():
            for folder in (top / name / "steps", top / name):
                with suppress(OSError):
                    folder.rmdir()


def parts_of(pid: int) -> dict[str, Path]:
    """Its folders by controller; all the same in version 2."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else ():
            found[name] = _ROOT / name / path.lstrip("/")
        if not names and (_ROOT / "cgroup.controllers").exists():
            return dict.fromkeys(("memory", "pids", "cpuacct"), _ROOT / path.lstrip("/"))
    return found


def _watch(group: Path) -> int:
    """A counter of the times that memory ran out."""
    events = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    watched = os.open(group / "memory.oom_control", os.O_RDONLY)
    try:
        (group / "cgroup.event_control").write_text(f"{events} {watched}")
    except OSError:
        os.close(events)
        raise
    finally:
        os.close(watched)
    return events


def _kills(group: Path) -> int:
    """The number of processes that the kernel has ended for want of memory; 0 where old kernels don't tell."""
    counts = dict(line.split() for line in (group / "memory.oom_control").read_text().splitlines())
    return int(counts.get("oom_kill", 0))


def _count(events: int) -> int:
    try:
        return os.eventfd_read(events)
    except BlockingIOError:
        return 0


def _cpu_seconds(group: Path) -> float:
    if (group / "cpuacct.usage").exists():
        return int((group / "cpuacct.usage").read_text()) / 1e9
    return int((group / "cpu.stat").read_text().split()[1]) / 1e6
