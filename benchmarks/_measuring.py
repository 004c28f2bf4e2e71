"""Shared functions of the benchmarks: alternating runs of processes, medians, and a description of the machine."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
sys.path.append(str(Path(__file__).parents[1] / "tests" / "_support"))  # servers and clusters


def machine() -> str:
    """Return one line that describes this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    return (
        f"Machine: {os.cpu_count()} CPUs ({model}), {memory:.0f} GiB, Python {platform.python_version()}; "
        f"load average {load:.1f} when measured."
    )


def cpu_of_ended() -> float:
    """Wait until no descendants are left; return the CPU seconds of all that ended, also of those that outlived their
    parents.
    """
    while True:
        try:
            os.wait()
        except ChildProcessError:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            return ended.ru_utime + ended.ru_stime


def seconds_of(
    command: Sequence[str], environment: Mapping[str, str] | None = None, code: int = 0
) -> tuple[float, float]:
    """Return wall seconds of a command, which must exit with `code`, and CPU seconds of all processes that it started.

    The caller must have no other processes.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, began = cpu_of_ended(), time.perf_counter()
    finished = subprocess.run(command, env=dict(environment or os.environ), capture_output=True)
    wall = time.perf_counter() - began
    if finished.returncode != code:
        sys.exit(f"{' '.join(command)} exited with {finished.returncode}:\n{finished.stderr.decode(errors='replace')}")
    return wall, cpu_of_ended() - before


def alternate(count: int, **measured: Callable[[], tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return median wall and CPU seconds of each function, measured in turns (A B A B …) after one uncounted round."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
    for number in range(count + 1):
        for name, measure in measured.items():
            taken = measure()
            if number:
                figures[name].append(taken)
    return {
        name: (statistics.median(wall for wall, _ in all_), statistics.median(cpu for _, cpu in all_))
        for name, all_ in figures.items()
    }


def command() -> str:
    """Return the command that makes the page, as repeated from the root of the project: without kept results."""
    arguments, words = iter(sys.argv), list[str]()
    for argument in arguments:
        if argument == "--data-dir":
            next(arguments)
        else:
            words.append(os.path.relpath(argument) if Path(argument).is_absolute() else argument)
    return shlex.join(["python", *words])


def table(*rows: Sequence[str]) -> str:
    """Return a Markdown table whose first row is the header."""
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def command_seconds() -> float:
    """Return the CPU seconds of the command of a step, started by a program that does nothing else."""
    code = (
        "import resource, subprocess\n"
        "for _ in range(100): subprocess.run(['sh', '-c', 'true'])\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print((used.ru_utime + used.ru_stime) / 100)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def file_seconds(folder: str) -> float:
    """Return the CPU seconds that creating a file or a folder takes now."""
    before = time.process_time()
    for number in range(200):
        path = Path(folder, f"files-{time.monotonic_ns()}", str(number))
        path.parent.mkdir()
        path.touch()
    return (time.process_time() - before) / 400
