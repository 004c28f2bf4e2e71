"""Slots: whoever asks, from threads or processes, never more is handed out than there is."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.sandboxes import slots
from mleredux._core.sandboxes.processes import birth
from mleredux._core.sandboxes.slots import GPUS_VARIABLE, Machine, Slots, gpu_uuids, machine
from mleredux.errors import SandboxError
from mleredux.models import Limits

HAS = Machine(cpus=2, memory_mb=1000, gpus=("0", "1"))
_HOLD = """
import sys, time
from pathlib import Path
from mleredux.models import Limits
from mleredux._core.sandboxes.slots import Machine, Slots
slots = Slots(Path(sys.argv[1]), Machine(2, 1000, ("0", "1")))
for number in range(int(sys.argv[2])):
    with slots.hold(f"{sys.argv[3]}-{number}", Limits(cpus=1, memory_mb=300, gpus=1), lambda: False, 0.01) as slot:
        held = slots.held()
        assert sum(one.cpus for one in held) <= 2 and len({gpu for one in held for gpu in one.gpus}) == len(held), held
        print("held", flush=True)
        time.sleep(float(sys.argv[4]))
"""


def limits(**asked: Any) -> Limits:
    return Limits(**{"cpus": 1, "memory_mb": 100, **asked})


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.5, 1, 2]), st.integers(64, 1000), st.integers(0, 2)), max_size=6))
def test_threads_never_hold_more_than_there_is(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[float, int, int]]
) -> None:
    slots = Slots(tmp_path_factory.mktemp("slots"), HAS)
    wrong: list[Any] = []

    def work(number: int, cpus: float, memory: int, gpus: int) -> None:
        with slots.hold(str(number), limits(cpus=cpus, memory_mb=memory, gpus=gpus), lambda: False, 0.002) as slot:
            held = slots.held()
            devices = [gpu for one in held for gpu in one.gpus]
            if slot not in held or sum(one.cpus for one in held) > 2 or sum(one.memory_mb for one in held) > 1000:
                wrong.append(held)
            if len(devices) != len(set(devices)) or slot is None or len(slot.gpus) != gpus:
                wrong.append(held)

    threads = [threading.Thread(target=work, args=(number, *one)) for number, one in enumerate(asked)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong and slots.held() == []


def test_processes_never_hold_more_than_there_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(tmp_path), "5"]
    processes = [subprocess.Popen([*command, name, "0.01"], stdout=subprocess.DEVNULL) for name in "abc"]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert Slots(tmp_path, HAS).held() == []


def test_a_killed_holder_gives_its_slot_back(tmp_path: Path) -> None:
    """Before its parent has reaped it."""
    command = [sys.executable, "-c", _HOLD, str(tmp_path), "1", "dies", "600"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    vacated: list[str] = []
    slots = Slots(tmp_path, HAS, vacate=lambda: vacated.append((tmp_path / ".slots.json").read_text()))
    assert [slot.run for slot in slots.held()] == ["dies-0"] and not vacated
    process.kill()
    with slots.hold("next", limits(cpus=2, gpus=2), lambda: False) as slot:
        assert slot is not None and slot.gpus == ("0", "1") and birth(process.pid) is None
    process.communicate()
    assert ["dies-0" in ledger for ledger in vacated] == [True], "once, before the slot was given to the next run"


def test_a_number_used_again_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    import os

    slot = {"run": "old", "pid": os.getpid(), "started": 1.0, "cpus": 2, "memory_mb": 1000, "gpus": ["0"]}
    (tmp_path / ".slots.json").write_text(json.dumps([slot]))
    assert Slots(tmp_path, HAS).held() == []


def test_parts_of_cpus_add_up(tmp_path: Path) -> None:
    slots = Slots(tmp_path, Machine(1.0, 1000, ()))
    with contextlib.ExitStack() as stack:
        held = [
            stack.enter_context(slots.hold(f"{cpus}", limits(cpus=cpus), lambda: False)) for cpus in (0.7, 0.2, 0.1)
        ]
        assert None not in held
        assert stack.enter_context(slots.hold("more", limits(cpus=0.1), lambda: True)) is None


def test_who_is_stopped_while_waiting_gets_none_and_takes_nothing(tmp_path: Path) -> None:
    slots = Slots(tmp_path, HAS)
    with slots.hold("a", limits(cpus=2), lambda: False):
        began = time.monotonic()
        with slots.hold("b", limits(), lambda: time.monotonic() - began > 0.2) as slot:
            assert slot is None
        assert [one.run for one in slots.held()] == ["a"]


def test_what_the_machine_never_has_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"4 CPUs of 2, 5000 MB memory of 1000, 3 GPUs of 2"):
        Slots(tmp_path, HAS).fit(limits(cpus=4, memory_mb=5000, gpus=3))


def test_a_damaged_ledger_is_an_error_and_no_licence(tmp_path: Path) -> None:
    (tmp_path / ".slots.json").write_text('[{"run": 1}]')
    with pytest.raises(SandboxError, match=r"slot ledger .* is damaged"):
        Slots(tmp_path, HAS).held()


def test_the_machine_can_be_described_by_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_CPUS", "3.5")
    monkeypatch.setenv("MLEREDUX_MEMORY_MB", "2048")
    monkeypatch.setenv("MLEREDUX_GPUS", "a, b,, a")  # a device twice is still one device
    assert machine() == Machine(3.5, 2048, ("a", "b"))


def test_an_engine_gives_a_part_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLEREDUX_CPUS", "MLEREDUX_MEMORY_MB", "MLEREDUX_GPUS"):
        monkeypatch.delenv(name, raising=False)
    whole = slots.machine()
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "1")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "2048")
    monkeypatch.setattr(slots, "gpu_uuids", lambda: (("GPU-a", "GPU-b"), None))
    for value, devices in (
        ("1", ("GPU-b",)),
        ("GPU-a", ("GPU-a",)),
        ("NoDevFiles", ()),
        ("5", ("5",)),
        ("1,GPU-b", ("GPU-b",)),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert slots.machine() == slots.Machine(1.0, min(2048, whole.memory_mb + 512) - 512, devices)
    monkeypatch.setenv("MLEREDUX_GPUS", "x")
    assert slots.machine().gpus == ("x",)


def test_control_groups_limit_what_is_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "system.slice/job_7"
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / "own").write_text(f"4:memory:/v1\n0::/{place}\n")
    monkeypatch.setattr(slots, "_OWN", tmp_path / "own")
    monkeypatch.delenv("SLURM_CPUS_ON_NODE", raising=False)
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    (tmp_path / place / "memory.max").write_text("1073741824\n")
    (tmp_path / place / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(slots, "_GROUPS", tmp_path)
    assert (slots.allocated_memory_mb(), slots.allocated_cpus()) == (1024, 1.5)
    (tmp_path / place / "cpu.max").write_text("max 100000\n")
    assert slots.allocated_cpus() is None


def test_devices_without_a_driver_are_those_of_a_slurm_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLEREDUX_GPUS", raising=False)
    monkeypatch.delenv("SLURM_JOB_GPUS", raising=False)
    monkeypatch.setattr(slots, "gpu_uuids", lambda: ((), None))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert slots.machine().gpus == ()
    monkeypatch.setenv("SLURM_JOB_GPUS", "3")
    assert slots.machine().gpus == ("0",)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0,-1,1", ("GPU-aa1",)),
        ("GPU-bb,0", ("GPU-bb2", "GPU-aa1")),
        ("GPU-a", ("GPU-a",)),
        ("MIG-GPU-x/1/0", ("MIG-GPU-x/1/0",)),
        ("1, 1,,0", ("GPU-bb2", "GPU-aa1")),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
    ],
)
def test_visible_devices_are_those_that_cuda_would_use(
    value: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CUDA, UUIDs may be shortened as long as they are unique, and -1 hides all that follow."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert slots.visible_devices(("GPU-aa1", "GPU-bb2", "GPU-ab3")) == expected


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo GPU-1-a; echo MIG-2/b", ("GPU-1-a", "MIG-2/b")),
        ("true", ()),
        ("echo GPU-1; echo 'WARNING: infoROM is corrupted at gpu 0000:00:1E.0'; exit 14", ("GPU-1",)),
        ("echo GPU-1; echo 'WARNING: a newer driver is available' >&2", ("GPU-1",)),
        ("echo GPU-1; echo '[GPU is lost]'", None),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", None),
        ("echo 'Failed to initialize NVML'", None),
        ("echo 'No devices were found' >&2; exit 6", None),
        ("echo GPU-1; echo 'Unable to determine the device handle'; exit 15", None),
        ("exit 9", None),
        ("printf 'GPU-1\\n\\377\\n'", None),
        ("kill -9 $$", None),
    ],
)
def test_a_tool_that_fails_gives_no_gpu_and_a_sentence(
    script: str, found: tuple[str, ...] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name in (GPUS_VARIABLE, "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"):
        monkeypatch.delenv(name, raising=False)
    gpus, why = gpu_uuids()
    assert machine().gpus == gpus == (found or ())
    assert (why is None) == (found is not None)
    if why:
        assert why.startswith("No GPU is used: nvidia-smi fails (") and "\n" not in why and "(GPU-1" not in why
        with pytest.raises(SandboxError, match="nvidia-smi fails"):
            Slots(tmp_path).fit(Limits(cpus=0.1, memory_mb=64, gpus=1))


def test_a_slot_is_released_once_the_ledger_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    """A program that lives on, such as a server's worker, must not hold the slots of ended runs."""
    pool = Slots(tmp_path, HAS)
    with pool.hold("first", limits(cpus=2), lambda: False):
        write, read_only = slots.write_atomically, [True]

        def refuse(path: Path, content: bytes) -> None:
            if read_only:
                raise OSError(30, "Read-only file system")
            write(path, content)

        monkeypatch.setattr(slots, "write_atomically", refuse)
    assert [slot.run for slot in pool.held()] == ["first"]
    read_only.clear()
    until(lambda: not pool.held())
    with pool.hold("second", limits(cpus=2), lambda: False) as slot:
        assert slot is not None
