"""`mleredux doctor --gpu` shows which GPUs an agent would see, and says why it sees none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.sandboxes.slots import Slots
from mleredux.errors import SandboxError
from mleredux.models import Limits
from mleredux_containers.gpu_check import PROBE, faults
from mleredux_support.commands import mleredux

FRAMEWORKS = {
    "torch": """
class cuda:
    device_count = staticmethod(lambda: 2)
class ones:
    def __init__(self, size, device):
        assert device != "cuda:1" or BROKEN is False, "CUDA error: device busy\\nmore"
    item = lambda self: 1.0
""",
    "tensorflow": "class config: list_physical_devices = staticmethod(lambda kind: [kind])",
    "jax": "from types import SimpleNamespace\ndevices = lambda: [SimpleNamespace(platform='cpu')]",
}


OTHERS = r"""
import os
from dataclasses import replace
from mleredux.errors import SandboxError
from mleredux.plugin import hookimpl
from mleredux.plugin.sandbox import Capabilities
from mleredux._core.sandboxes.process import ProcessSandbox

class Without(ProcessSandbox):
    id = "without"
    capabilities = Capabilities()

class Busy(ProcessSandbox):
    id = "busy"

    def start(self, launch):
        return super().start(replace(launch, env={**launch.env, "PYTHONPATH": os.environ["FRAMEWORKS"]}))

class Broken(ProcessSandbox):
    id = "broken"

    def start(self, launch):
        if not launch.gpu_ids[0].isdigit():
            raise SandboxError("\x1b]0;title\x07 is refused.", hint="\x1b[2J")
        return super().start(replace(launch, command=("sh", "-c", "echo no python; printf 'why\033[2J'; exit 3")))

@hookimpl
def mleredux_register_sandboxes():
    return [Without(), Busy(), Broken()]
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLEREDUX_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"):
        monkeypatch.delenv(name, raising=False)


def tool(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("broken", [False, True])
def test_the_probe_prints_what_frameworks_and_the_driver_find(
    broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FRAMEWORKS.items():
        (tmp_path / f"{name}.py").write_text(f"BROKEN = {broken}\n{text}")
    tool(tmp_path, "echo 'GPU 0: A100 (UUID: GPU-1-a)'; echo '  MIG 1g.5gb Device 0: (UUID: MIG-2/b)'", monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-2/b")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    seen = json.loads(printed.stdout.splitlines()[-1])
    assert seen["driver"] == ["GPU-1-a", "MIG-2/b"] and seen["variables"]["CUDA_VISIBLE_DEVICES"] == "MIG-2/b"
    torch = "CUDA error: device busy more" if broken else 2
    assert seen["frameworks"] == {"torch": torch, "tensorflow": 1, "jax": 0}


def seen(cuda: str | None, *nodes: str, **frameworks: Any) -> dict[str, Any]:
    return {"variables": {"CUDA_VISIBLE_DEVICES": cuda}, "nodes": list(nodes), "frameworks": frameworks}


@pytest.mark.parametrize(
    ("found", "gpus", "contained", "sentences"),
    [
        (seen("GPU-1", "/dev/nvidia0", torch=1, jax=1), 1, True, []),
        (seen("MIG-1", "/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia0"), 1, True, []),
        (seen("0", "/dev/nvidia0", "/dev/nvidia1"), 1, False, []),
        (seen("0,1", "/dev/dri/renderD128", "/dev/kfd"), 2, True, []),
        (seen("-1"), 0, True, []),
        (seen(None, torch=0), 0, True, []),
        (seen("", "/dev/nvidia0"), 0, False, []),
        (seen("0", "/dev/nvidia0", "/dev/nvidia1"), 1, True, ["can open the devices of other runs, because 2 are"]),
        (seen("-1", "/dev/nvidia0"), 0, True, ["can open the devices of other runs, because 1 are"]),
        (seen("0"), 1, True, ["No device node"]),
        (seen("0"), 1, False, ["No device node"]),
        (seen(None, "/dev/nvidia0"), 1, False, ["names 0 devices, not 1"]),
        (seen("0,1", "/dev/nvidia0"), 1, True, ["names 2 devices, not 1"]),
        (
            seen("0", "/dev/nvidia0", torch=0, jax="no backend"),
            1,
            True,
            ["torch finds 0 GPUs", "jax fails (no backend)"],
        ),
    ],
)
def test_an_error_in_what_an_agent_sees_is_one_sentence(
    found: dict[str, Any], gpus: int, contained: bool, sentences: list[str]
) -> None:
    wrong = list(faults(found, gpus, contained=contained))
    assert len(wrong) == len(sentences)
    assert all(expected in sentence for sentence, expected in zip(wrong, sentences, strict=True))


@pytest.mark.parametrize(
    ("variables", "script", "why"),
    [
        ({"MLEREDUX_GPUS": ""}, "echo GPU-1", "MLEREDUX_GPUS is empty"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "echo GPU-1", "CUDA_VISIBLE_DEVICES='-1' hides all of them"),
        ({}, "true", "nvidia-smi lists none"),
        ({}, "echo Driver/library version mismatch; exit 18", "nvidia-smi fails (Driver/library version mismatch)"),
        ({}, "echo No devices were found; exit 6", "nvidia-smi fails (No devices were found)"),
        ({}, "kill -SEGV $$", "nvidia-smi fails (exit code -11)"),
        (
            {},
            "echo GPU-1; echo Unable to determine the handle of 1E:00.0; exit 15",
            "fails (Unable to determine the handle",
        ),
        ({"PATH": "/usr/bin:/bin"}, None, "nvidia-smi is not installed"),
    ],
)
def test_without_a_gpu_a_sentence_says_why(
    variables: dict[str, str], script: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        tool(tmp_path, script, monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    doctor = mleredux("doctor", "--gpu", "--sandbox", "process", "--json")
    slots, process = doctor.json["findings"]
    assert doctor.code == 3 and (slots["name"], slots["level"]) == ("slots", "error") and why in slots["message"]
    assert "CUDA_VISIBLE_DEVICES=-1, NVIDIA_VISIBLE_DEVICES=void" in process["message"]
    assert ("An agent sees no GPU, because this machine has no slot" in process["message"]) == (
        process["level"] == "ok"
    )


def test_a_device_that_no_sandbox_shows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_GPUS", "MIG-5,GPU-6")
    doctor = mleredux("doctor", "--gpu", "--sandbox", "process")
    lines = [line.strip() for line in doctor.out.splitlines()]
    assert doctor.code == 3 and "✓ slots: MIG-5, GPU-6." in lines and "No sandbox gives an agent its GPU." in doctor.out
    shown = "! process: No device node of a GPU is visible. No device node; CUDA_VISIBLE_DEVICES=MIG-5, NVIDIA_"
    assert any(line.startswith(shown) for line in lines), doctor.out


@pytest.mark.parametrize(
    ("gpu", "message"), [("MIG-1", r"\x1b]0;title\x07 is refused."), ("0", r"The probe failed: why\x1b[2J.")]
)
def test_a_probe_that_fails_is_one_harmless_sentence(
    gpu: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    monkeypatch.setenv("MLEREDUX_GPUS", gpu)
    found = mleredux("-p", str(tmp_path / "others.py"), "doctor", "--gpu", "--sandbox", "broken")
    assert found.code == 3 and f"! broken: {message}\n" in found.out and "\x1b" not in found.out, found.out


def test_a_busy_device_is_a_warning_with_the_frameworks_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    (tmp_path / "torch.py").write_text(f"BROKEN = True\n{FRAMEWORKS['torch']}")
    monkeypatch.setenv("FRAMEWORKS", str(tmp_path))
    monkeypatch.setenv("MLEREDUX_GPUS", "1")
    found = mleredux("-p", str(tmp_path / "others.py"), "doctor", "--gpu", "--sandbox", "busy")
    assert found.code == 3 and "torch fails (CUDA error: device busy more)" in found.out, found.out


@pytest.mark.parametrize(
    ("now", "gpus", "why"),
    [
        ("true", 1, "1 GPU of 0."),
        ("echo GPU-1-a", 2, "2 GPUs of 1."),
        ("echo Driver/library version mismatch; exit 18", 1, "1 GPU of 0 (No GPU is used: nvidia-smi fails (Driver/"),
    ],
    ids=["gone", "one-of-two-gone", "driver-updated"],
)
def test_a_gpu_that_the_driver_has_lost_is_given_to_no_run(
    now: str, gpus: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every sandbox, as slots are taken before an agent starts."""
    tool(tmp_path, "echo GPU-1-a; echo GPU-2-b", monkeypatch)
    slots, limits = Slots(tmp_path / "runs"), Limits(cpus=0.1, memory_mb=16, gpus=gpus)
    with slots.hold("first", limits, lambda: False) as slot:
        assert slot is not None and slot.gpus == ("GPU-1-a", "GPU-2-b")[:gpus]
    tool(tmp_path, now, monkeypatch)
    with pytest.raises(SandboxError) as refused, slots.hold("second", limits, lambda: False):
        pass
    assert why in str(refused.value) and ".)" not in str(refused.value)


def test_a_missing_sandbox_and_one_without_gpus_are_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    monkeypatch.setenv("MLEREDUX_GPUS", "0")
    missing = mleredux("doctor", "--gpu", "--sandbox", "nowhere")
    assert missing.code == 3 and "! nowhere: There is no sandbox 'nowhere'." in missing.out
    without = mleredux("-p", str(tmp_path / "others.py"), "doctor", "--gpu", "--sandbox", "without")
    assert without.code == 3 and "! without: This sandbox can't give GPUs to agents." in without.out
