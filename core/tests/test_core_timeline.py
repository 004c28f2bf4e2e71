"""What an agent uses over its time is written down, and read again whatever became of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.protocols import Usage
from mleredux._core.sandboxes.timeline import COLUMNS, Timeline, gpu_usage, read_timeline
from mleredux.models import Sample


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that answers in the real program's form; what it was asked."""
    program, asked = tmp_path / "bin" / "nvidia-smi", tmp_path / "asked"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" > {asked}\nprintf "40, 1024\\n60, 2048\\n"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return asked


def test_a_run_has_a_timeline_of_its_resources(toy: Any) -> None:
    run = toy.run("worker")
    samples = run.resources()
    assert samples and samples[0].memory_mb and samples[0].processes
    assert "logs/resources.csv" in {artifact.path for artifact in run.manifest.artifacts}


def test_lines_are_as_dense_as_the_time_limit_asks(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "r.csv", 10_000)
    for tenth in range(3, 1000):
        timeline.record(tenth / 10, Usage(100.0, tenth / 20, 3))
    samples = read_timeline(tmp_path / "r.csv")
    assert [sample.seconds for sample in samples] == pytest.approx([0.3 + 10.0 * number for number in range(10)])
    assert samples[2] == Sample(seconds=20.3, memory_mb=100.0, cpu_seconds=10.15, processes=3)
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == ",".join(COLUMNS)


def test_gpus_of_the_run_are_asked_for(tmp_path: Path, nvidia_smi: Path) -> None:
    Timeline(tmp_path / "r.csv", 60, ("GPU-a", "GPU-b")).record(1, Usage(1.0, 1.0, 1))
    (sample,) = read_timeline(tmp_path / "r.csv")
    assert (sample.gpu_percent, sample.gpu_memory_mb) == (50.0, 3072.0)
    assert "--id=GPU-a,GPU-b" in nvidia_smi.read_text()


def test_without_the_driver_gpus_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert gpu_usage(["0"]) == (None, None)


def test_a_damaged_file_gives_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"seconds,x\n1,2,3,4,,\n\xff\xfe,,,,,\n2,3\n3,,,,,\n4,5,6")
    assert [sample.seconds for sample in read_timeline(path)] == [1.0, 3.0]
    assert read_timeline(tmp_path / "none.csv") == []
