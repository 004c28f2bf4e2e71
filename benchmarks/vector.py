"""Measure many concurrent Gymnasium environments: `uv run python benchmarks/vector.py`; with CPU of all processes."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import mleredux_bridge_gymnasium.environment  # registers the environment
import numpy as np
import psutil
from _measuring import machine, table

SIZES = (1, 8, 64)
COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'
SUBMIT = mleredux_bridge_gymnasium.environment.SUBMIT


def cpu() -> float:
    """Return CPU seconds of this process, its descendants, and those that ended."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return total


def memory() -> float:
    """Return the proportional set size of this process and its descendants in MB."""
    processes = (psutil.Process(), *psutil.Process().children(recursive=True))
    return sum(float(process.memory_full_info().pss) for process in processes) / 2**20


def measured(size: int, folder: str, base: float) -> tuple[str, ...]:
    """Return a line of the table: environments, resets, steps and ends per second, CPU time of each, and memory."""
    places = {"sandbox": "process", "runs_dir": f"{folder}/runs-{size}", "data_dir": f"{folder}/data"}
    mode = "vector_entry_point"
    envs: Any = gymnasium.make_vec("mleredux/Task-v0", num_envs=size, vectorization_mode=mode, task="wine", **places)

    def step(kind: int, text: str) -> Any:
        return envs.step({"kind": np.full(size, kind), "text": (text,) * size})

    def timed(call: Callable[[], Any], times: int = 1) -> str:
        wall, before = time.perf_counter(), cpu()
        for _ in range(times):
            call()
        each = size * times
        used = 1000 * (cpu() - before) / each
        return f"{each / (time.perf_counter() - wall):.1f} ({used:.0f} ms)"

    resets = timed(lambda: envs.reset(seed=0))
    steps = timed(lambda: step(0, "true"), max(3, 64 // size))
    used = memory()
    step(0, COPY)
    ends = timed(lambda: step(SUBMIT, ""))
    envs.close()
    return str(size), resets, steps, ends, f"{used:.0f}", f"{(used - base) / size:.1f}"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        measured(1, folder, 0)  # prepares the data, and starts the process that graders are forked from
        base = memory()
        rows = [measured(size, folder, base) for size in SIZES]
    head = ("environments", "resets/s (CPU each)", "steps/s (CPU each)", "ends with grade/s (CPU each)")
    sys.stdout.write(f"{machine()}\n\n{table((*head, 'memory (MB)', 'each (MB)'), *rows)}\n")


if __name__ == "__main__":
    main()
