"""What an engine gave this process of its machine: by control groups, or by the variables of a Slurm job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"
_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NO_DEVICES = ("", "-1", "NoDevFiles")


def allocated_cpus() -> float | None:
    """CPUs of the control group or of the job; None where neither limits them."""
    found = [float(value) for value in (os.environ.get("SLURM_CPUS_ON_NODE"),) if value and value.isdigit()]
    for text in _limits("cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            found.append(int(quota) / int(period))
    return min(found, default=None)


def allocated_memory_mb() -> int | None:
    """Memory of the control group or of the job; None where neither limits it."""
    found = []
    if (memory := os.environ.get("SLURM_MEM_PER_NODE", "")).isdigit():
        found.append(int(memory))
    if (memory := os.environ.get("SLURM_MEM_PER_CPU", "")).isdigit() and (cpus := allocated_cpus()):
        found.append(int(int(memory) * cpus))
    found += [int(text) // 2**20 for text in _limits("memory.max") if text.isdigit()]
    found = [value for value in found if value > 0]  # 0 is all that the node has
    return min(found, default=None)


def visible_devices(listed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the devices that `CUDA_VISIBLE_DEVICES` names; all where it is not set, none where there are none.

    In a Slurm job with GPUs it is believed even if there is no driver that lists them.

    Args:
        listed: Names of all devices that the driver shows to this process, in its order. In a control group that hides
            the others, the numbers of the variable count only those.
    """
    value = os.environ.get(DEVICES_VARIABLE)
    if value is None or (not listed and not os.environ.get("SLURM_JOB_GPUS")):
        return listed
    names = [name.strip() for name in value.split(",") if name.strip() not in _NO_DEVICES]
    return tuple(listed[int(name)] if name.isdigit() and int(name) < len(listed) else name for name in names)


def _limits(name: str) -> Iterator[str]:
    """The values of a file in this process's control group (version 2) and those above it."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if own is None:
        return
    place = _GROUPS / own.lstrip("/")
    for folder in (place, *place.parents):
        if not folder.is_relative_to(_GROUPS):
            return
        try:
            yield (folder / name).read_text().strip()
        except OSError:
            continue
