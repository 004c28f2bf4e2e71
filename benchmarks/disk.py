"""Measure the disk limit's cost: `uv run python benchmarks/disk.py [--pairs 9]`, with base image MLEREDUX_BASE_IMAGE.

Runs are paired: one with a separate file system, one that measures its folders instead, in alternating order. Needs
root. `--alone` measures only the overhead of a file system, without runs, which is less sensitive to load.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from _measuring import machine, seconds_of, table

AGENT = """
from mleredux import Agent, Limits, hookimpl
CODE = "import os; open(os.environ['MLEREDUX_SUBMISSION'], 'wb').write(bytes(2 << 20))"
@hookimpl
def mleredux_register_agents():
    return [Agent(id="bench-writer", title="W", command=("python", "-c", CODE), limits=Limits(cpus=1, memory_mb=256))]
"""
SANDBOXES = {"process": None, "docker": "docker", "podman": "podman"}
"""The program that each sandbox needs."""


def alone(times: int) -> list[float]:
    """Return wall seconds of creating, filling and closing the disk of a run."""
    from mleredux._core.sandboxes.volume import open_disk

    taken = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "logs").mkdir()
            (path / "logs" / "agent.log").touch()
            begun = time.monotonic()
            disk = open_disk(path, 10 << 10, going_on=False)
            (path / "output" / "submission.csv").write_bytes(bytes(2 << 20))
            disk.close()
            taken.append(time.monotonic() - begun)
    return sorted(taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--sandbox", action="append", choices=list(SANDBOXES))
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    if options.alone:
        durations = alone(options.pairs)
        low, median, high = statistics.quantiles(durations, n=4)
        print(machine())
        print(
            f"{options.pairs} times: {median:.2f} s (quartiles {low:.2f} to {high:.2f}), at most {durations[-1]:.2f} s"
        )
        return
    program = str(Path(sys.executable).with_name("mleredux"))
    rows = []
    for sandbox in options.sandbox or [
        name for name, needs in SANDBOXES.items() if needs is None or shutil.which(needs)
    ]:
        with tempfile.TemporaryDirectory() as folder:
            plugin = Path(folder) / "bench_plugin.py"
            plugin.write_text(AGENT)
            command = [
                program,
                "-p",
                "mleredux_testing.toys",
                "-p",
                str(plugin),
                "run",
                "toy",
                "--agent",
                "bench-writer",
            ]
            command += ["--sandbox", sandbox, "--runs-dir", f"{folder}/runs", "--data-dir", f"{folder}/data"]
            image = os.environ.get("MLEREDUX_BASE_IMAGE")
            command += ["--base-image", image] if image and sandbox != "process" else []
            taken: dict[str, list[tuple[float, float]]] = {"volume": [], "walk": []}
            for number in range(options.pairs + 1):
                for kind in sorted(taken, reverse=bool(number % 2)):
                    environment = dict(os.environ, **({"MLEREDUX_DISK_LIMIT": "walk"} if kind == "walk" else {}))
                    seconds = seconds_of(["sh", "-c", '"$@" || test $? = 3', "sh", *command], environment)
                    if number:
                        taken[kind].append(seconds)
        for place, what in enumerate(("wall", "CPU")):
            pairs = list(zip(*([each[place] for each in kind] for kind in taken.values()), strict=True))
            gaps = sorted(volume - walk for volume, walk in pairs)
            quartiles = statistics.quantiles(gaps, n=4)
            medians = [f"{statistics.median(side):.2f}" for side in zip(*pairs, strict=True)]
            spread = f"{statistics.median(gaps):+.2f} ({quartiles[0]:+.2f} to {quartiles[2]:+.2f})"
            rows.append((f"{sandbox}, {what}", *medians, spread))
    print(machine())
    print(f"Medians of {options.pairs} pairs; in brackets the quartiles.\n")
    print(table(("seconds of", "with a volume", "with the walk", "difference"), *rows))


if __name__ == "__main__":
    main()
