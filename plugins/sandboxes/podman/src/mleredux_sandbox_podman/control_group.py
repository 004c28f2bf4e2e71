"""Read the resource usage of a container from its control group, without podman."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mleredux.plugin.sandbox import Usage
from mleredux_containers import OWN_PROCESSES

_ROOT = Path("/sys/fs/cgroup")


class ControlGroup:
    """The control group of a process; the usage is unknown once the process has ended.

    Args:
        pid: The container's first process.
    """

    def __init__(self, pid: int) -> None:
        self._parts: dict[str, Path] = {}
        with suppress(OSError):
            self._parts = parts_of(pid)

    def usage(self) -> Usage:
        """Return the resources used so far."""
        with suppress(OSError, KeyError, ValueError):
            memory, processes = self._parts["memory"], self._parts["pids"]
            first = "memory.current" if (memory / "memory.current").exists() else "memory.usage_in_bytes"
            # File pages that the kernel can reclaim don't count; the name differs in cgroup version 2.
            detail = dict(line.split() for line in (memory / "memory.stat").read_text().splitlines())
            cached = int(detail.get("total_inactive_file", detail.get("inactive_file", 0)))
            return Usage(
                memory_mb=(int((memory / first).read_text()) - cached) / (1 << 20),
                cpu_seconds=_cpu_seconds(self._parts["cpuacct"]),
                processes=max(0, int((processes / "pids.current").read_text()) - OWN_PROCESSES),
            )
        return Usage()


@contextmanager
def limited_group(processes: int) -> Iterator[list[str]]:
    """Yield options that limit the number of processes of all steps of a build from the start; empty without root."""
    second = (_ROOT / "cgroup.controllers").exists()
    name = f"mleredux-build-{os.getpid()}-{os.urandom(4).hex()}"
    group = (_ROOT if second else _ROOT / "pids") / name
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
    except OSError:
        with suppress(OSError):
            group.rmdir()  # created, but its controller is not enabled (version 2)
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
    """Return the control group folders of a process by controller; all the same in version 2."""
    parts = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else ():
            parts[name] = _ROOT / name / path.lstrip("/")
        if not names and (_ROOT / "cgroup.controllers").exists():
            return dict.fromkeys(("memory", "pids", "cpuacct"), _ROOT / path.lstrip("/"))
    return parts


def _cpu_seconds(group: Path) -> float:
    if (group / "cpuacct.usage").exists():
        return int((group / "cpuacct.usage").read_text()) / 1e9
    return int((group / "cpu.stat").read_text().split()[1]) / 1e6
