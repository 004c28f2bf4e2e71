"""Allocate CPUs, memory and GPUs as slots to all runs on this machine that share a runs directory.

An engine may have given this process only part of its machine: by control groups, or by the variables of a Slurm job.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import psutil

from mleredux._core.sandboxes.processes import birth
from mleredux._core.store.files import FileLock, write_atomically
from mleredux.errors import SandboxError, one_line
from mleredux.models import Limits
from mleredux.models.formats import counted, plain

CPUS_VARIABLE = "MLEREDUX_CPUS"
MEMORY_VARIABLE = "MLEREDUX_MEMORY_MB"
GPUS_VARIABLE = "MLEREDUX_GPUS"
_UUID = re.compile(r"(GPU|MIG)-[\w./-]+")
_RESERVED_MB = 512
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Machine:
    """The resources of this machine, which all runs share."""

    cpus: float
    """Number of CPU cores."""
    memory_mb: int
    """Memory in MiB."""
    gpus: tuple[str, ...]
    """Ids of the GPUs."""


@dataclass(frozen=True)
class Slot:
    """The resources held by one run."""

    run: str
    """Id of the run."""
    pid: int
    """Process id of the program that executes the run."""
    started: float
    """The process's `birth`, which distinguishes it from a later process with the same id."""
    cpus: float
    """CPU cores that the run reserves."""
    memory_mb: int
    """Memory in MiB that the run reserves."""
    gpus: tuple[str, ...]
    """Ids of the GPUs that the run uses exclusively."""


_as_json = lru_cache(8192)(lambda slot: json.dumps(vars(slot)))  # the ledger is written whole for each run


def machine() -> Machine:
    """Return the resources of this machine, or the part of them that an engine gave this process.

    `MLEREDUX_CPUS`, `MLEREDUX_MEMORY_MB` and `MLEREDUX_GPUS` (comma-separated ids) take precedence.
    """
    cpus = os.environ.get(CPUS_VARIABLE)
    memory = os.environ.get(MEMORY_VARIABLE)
    gpus = os.environ.get(GPUS_VARIABLE)
    total = psutil.virtual_memory().total // 2**20
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(
        cpus=float(cpus) if cpus else min(float(available), allocated_cpus() or math.inf),
        memory_mb=int(memory) if memory else max(min(total, allocated_memory_mb() or total) - _RESERVED_MB, 256),
        gpus=tuple(dict.fromkeys(gpu.strip() for gpu in gpus.split(",") if gpu.strip()))
        if gpus is not None
        else visible_devices(gpu_uuids()[0]),
    )


def gpu_uuids() -> tuple[tuple[str, ...], str | None]:
    """Return the GPUs that the driver lists, or a sentence that explains why it can't list them."""
    if shutil.which("nvidia-smi") is None:
        return (), None
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return (), f"No GPU is used: nvidia-smi failed ({one_line(error)})."
    lines = [line.strip() for line in f"{listed.stdout}\n{listed.stderr}".splitlines() if line.strip()]
    uuids = tuple(line for line in lines if _UUID.fullmatch(line))
    wrong = [line for line in lines if line not in uuids and not line.startswith("WARNING")]
    if listed.returncode in (0, 14) and not wrong:  # 14: the infoROM of a usable device is corrupted
        return uuids, None
    return (), f"No GPU is used: nvidia-smi fails ({wrong[0] if wrong else f'exit code {listed.returncode}'})."


class Slots:
    """The ledger of slots in a runs directory. Safe for threads and processes; recovers after a process is killed.

    Args:
        folder: The runs directory.
        has: The available resources; None: those of this machine.
        vacate: Called before the slots of killed programs are given to others, to end what still uses them.
    """

    def __init__(self, folder: Path, has: Machine | None = None, vacate: Callable[[], None] = lambda: None) -> None:
        self.folder, self._vacate = folder, vacate
        self.has, self._fixed = has or machine(), has is not None
        self._known: tuple[bytes, list[Slot]] = b"", []  # the ledger as it was written last, and its slots

    def fit(self, limits: Limits) -> Limits:
        """Return the limits, reduced to the resources of this machine.

        Raises:
            SandboxError: The machine can never provide these resources.
        """
        if limits.gpus and not self._fixed:  # the driver may have lost some since
            self.has = machine()
        lacking = []
        if limits.cpus > self.has.cpus:
            lacking.append(f"{plain(limits.cpus)} CPUs of {plain(self.has.cpus)}")
        if limits.memory_mb > self.has.memory_mb:
            lacking.append(f"{limits.memory_mb} MB memory of {self.has.memory_mb}")
        if limits.gpus > len(self.has.gpus):
            why = "" if os.environ.get(GPUS_VARIABLE) else (gpu_uuids()[1] or "").rstrip(".")
            lacking.append(f"{counted(limits.gpus, 'GPU')} of {len(self.has.gpus)}{f' ({why})' if why else ''}")
        if lacking:
            raise SandboxError(
                f"The run requests more than this machine has: {', '.join(lacking)}.",
                hint="Request less with --cpus, --memory or --gpus.",
            )
        return limits

    @contextlib.contextmanager
    def hold(
        self, run_id: str, limits: Limits, stopped: Callable[[], bool], poll: float = 0.1
    ) -> Iterator[Slot | None]:
        """Wait until the machine has room, hold a slot, and release it at the end.

        Args:
            run_id: The run.
            limits: The resources that it needs.
            stopped: Called while waiting; if it returns True, the context yields None.
            poll: Seconds between attempts.
        """
        self.fit(limits)
        while (slot := self._try(run_id, limits)) is None and not stopped():
            time.sleep(poll)
        try:
            yield slot
        finally:
            if slot is not None:
                self._release(slot)

    def _release(self, slot: Slot, seconds: float = 0.0) -> None:
        """Release a slot after some seconds; while the ledger can't be written, try again in the background, since this
        process may live for a long time."""
        time.sleep(seconds)
        try:
            with self._ledger() as held, contextlib.suppress(ValueError):
                held.remove(slot)
        except OSError:
            threading.Thread(target=self._release, args=(slot, 1.0), daemon=True).start()

    def held(self) -> list[Slot]:
        """Return the slots in use."""
        with self._ledger() as held:
            return list(held)

    def _try(self, run_id: str, limits: Limits) -> Slot | None:
        with self._ledger() as held:
            taken = {gpu for slot in held for gpu in slot.gpus}
            free_gpus = [gpu for gpu in self.has.gpus if gpu not in taken]
            if (
                sum(slot.cpus for slot in held) + limits.cpus > self.has.cpus + _ROUNDING
                or sum(slot.memory_mb for slot in held) + limits.memory_mb > self.has.memory_mb
                or len(free_gpus) < limits.gpus
            ):
                return None
            pid, gpus = os.getpid(), tuple(free_gpus[: limits.gpus])
            slot = Slot(run_id, pid, birth(pid) or 0.0, limits.cpus, limits.memory_mb, gpus)
            held.append(slot)
            return slot

    @contextlib.contextmanager
    def _ledger(self) -> Iterator[list[Slot]]:
        """Yield the slots of live processes, to be modified in place."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / ".slots.json"
        with FileLock(self.folder / ".slots.lock"):
            content, listed = self._known
            try:
                if (current := path.read_bytes()) != content:
                    listed = [Slot(**{**item, "gpus": tuple(item["gpus"])}) for item in json.loads(current)]
            except FileNotFoundError:
                listed = []
            except (ValueError, KeyError, TypeError) as error:  # guessing would oversubscribe the machine
                raise SandboxError(
                    f"The slot ledger {path} is damaged ({type(error).__name__}).",
                    hint="Delete it when no run is active.",
                ) from error
            born = {pid: birth(pid) for pid in {slot.pid for slot in listed}}
            if (held := [slot for slot in listed if born[slot.pid] == slot.started]) != listed:
                self._vacate()
            yield held
            if held != listed:
                content = f"[{', '.join(map(_as_json, held))}]".encode()
                write_atomically(path, content)
                self._known = content, held


DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"
_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NO_DEVICES = ("-1", "NoDevFiles")


def allocated_cpus() -> float | None:
    """Return the CPUs of the control group or of the job; None if neither limits them."""
    limits = [float(value) for value in (os.environ.get("SLURM_CPUS_ON_NODE"),) if value and value.isdigit()]
    for text in _limits("cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def allocated_memory_mb() -> int | None:
    """Return the memory of the control group or of the job in MiB; None if neither limits it."""
    node, cpu = (os.environ.get(f"SLURM_MEM_PER_{name}", "") for name in ("NODE", "CPU"))
    values = [int(text) // 2**20 for text in _limits("memory.max") if text.isdigit()]
    values += [int(node) if node.isdigit() else 0, int(int(cpu) * (allocated_cpus() or 0)) if cpu.isdigit() else 0]
    return min((value for value in values if value > 0), default=None)  # 0 means all memory of the node


def visible_devices(listed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the devices that `CUDA_VISIBLE_DEVICES` names, or all devices if it is not set.

    As in CUDA, a UUID may be shortened, and -1 hides all devices that follow. In a Slurm job with GPUs, the variable is
    trusted even if no driver lists the devices.

    Args:
        listed: Names of all devices that the driver shows to this process, in its order. In a control group that hides
            other devices, the numbers in the variable refer only to these.
    """
    value = os.environ.get(DEVICES_VARIABLE)
    if value is None or (not listed and not os.environ.get("SLURM_JOB_GPUS")):
        return listed
    chosen = []
    for name in takewhile(lambda name: name not in _NO_DEVICES, filter(None, map(str.strip, value.split(",")))):
        named = listed[int(name) :][:1] if name.isdigit() else [uuid for uuid in listed if uuid.startswith(name)]
        chosen.append(named[0] if len(named) == 1 else name)
    return tuple(dict.fromkeys(chosen))


def _limits(name: str) -> Iterator[str]:
    """Yield the values of a file in this process's control group (version 2) and its ancestors."""
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
        with contextlib.suppress(OSError):
            yield (folder / name).read_text().strip()
