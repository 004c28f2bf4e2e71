"""An agent's resource use over time: a CSV next to its log, with about one line per thousandth of its time limit."""

from __future__ import annotations

import contextlib
import csv
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mleredux._core.protocols import Usage
from mleredux._core.store.files import read_bounded
from mleredux.models import Sample

TIMELINE_FILE = "resources.csv"
"""The file under a run's `logs` with the samples of its resource use."""
COLUMNS = tuple(Sample.model_fields)
_SAMPLES = 1000
_BYTES = 1 << 20
"""The number of bytes that are read, which a run of a month does not reach."""
_GPU_SECONDS = 5.0
_FIRST_SECONDS = 0.25
"""Earlier samples would only show the start itself."""


class Timeline:
    """Writes samples of resource use.

    Args:
        path: The CSV; lines are appended if it exists.
        time_limit: The agent's time limit in seconds.
        gpu_ids: The run's devices.
    """

    def __init__(self, path: Path, time_limit: float, gpu_ids: Sequence[str] = ()) -> None:
        self._path, self._gpu_ids = path, tuple(gpu_ids)
        self._every = min(60.0, max(1.0, time_limit / _SAMPLES))
        self._next = _FIRST_SECONDS

    def record(self, seconds: float, usage: Usage) -> None:
        """Write a line if one is due.

        Args:
            seconds: Seconds since the agent's start.
        """
        if seconds < self._next or usage == Usage():
            return
        self._next = seconds + self._every
        percent, memory = gpu_usage(self._gpu_ids) if self._gpu_ids else (None, None)
        values = (seconds, usage.memory_mb, usage.cpu_seconds, usage.processes, percent, memory)
        row = ["" if value is None else f"{value:.2f}".rstrip("0").rstrip(".") for value in values]
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([row] if file.tell() else [COLUMNS, row])


def read_timeline(source: Path | bytes) -> list[Sample]:
    """Return the samples of a run from the path or the content of its file.

    Broken lines and values that are not numbers are ignored.
    """
    samples = []
    with contextlib.suppress(OSError, csv.Error):
        content = source if isinstance(source, bytes) else read_bounded(source)
        for row in csv.reader(content[:_BYTES].decode(errors="replace").splitlines()):
            with contextlib.suppress(ValueError):
                known = [float(cell) if cell else None for cell in row]
                samples.append(Sample.model_validate(dict(zip(COLUMNS, known, strict=True))))
    return samples


def gpu_usage(gpu_ids: Sequence[str]) -> tuple[float | None, float | None]:
    """Return the mean utilization of devices in percent and their memory in MiB, from `nvidia-smi`; None if unknown."""
    query = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", f"--id={','.join(gpu_ids)}"]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, IndexError, ZeroDivisionError):
        result = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, timeout=_GPU_SECONDS)
        rows = [[float(cell) for cell in line.split(",")] for line in result.stdout.splitlines() if line.strip()]
        return sum(row[0] for row in rows) / len(rows), sum(row[1] for row in rows)
    return None, None
