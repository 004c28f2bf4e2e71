"""Measure the cost of a run that does nothing, compared with `import pandas`: `uv run python benchmarks/run_cost.py`.

CPU seconds include all processes that a command starts, even if they outlive it. Docker is included if an engine is
reachable; the base image is MLEREDUX_BASE_IMAGE. `--runs N` is the number of runs on the server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from _measuring import cpu_of_ended, machine, seconds_of, table
from mleredux_client import Client
from mleredux_support.server import ServerProcess
from service import PLUGIN, RUN, client, cpu_of, serving, wait_for_all

ROUNDS = 7


def image() -> str | None:
    """Return an image to start, or None if there is no engine."""
    named = os.environ.get("MLEREDUX_BASE_IMAGE")
    try:
        answers = subprocess.run(["docker", "version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.SubprocessError):
        answers = False
    return named if answers else None


def commands(home: Path) -> list[Sequence[str]]:
    """Measure runs from the command line, compared with their minimum requirements."""
    (home / "noop_agents.py").write_text(PLUGIN, encoding="utf-8")
    program = str(Path(sys.executable).with_name("mleredux"))
    plugins = ("-p", "mleredux_testing.toys", "-p", str(home / "noop_agents.py"))
    folders = ("--json", "--runs-dir", str(home / "runs"), "--data-dir", str(home / "data"))
    digits = (program, "run", "digits", "--agent", "dummy", *folders)
    measured = {
        "`import pandas`": (sys.executable, "-c", "import pandas"),
        "a no-op run of `toy`, graded": (program, *plugins, "run", "toy", "--agent", "noop", *folders),
        "`digits` with `dummy`, process sandbox": (*digits, "--sandbox", "process"),
    }
    if base := image():
        measured["`docker run --rm IMAGE true`"] = ("docker", "run", "--rm", base, "true")
        measured["`digits` with `dummy`, Docker"] = docker = (*digits, "--sandbox", "docker", "--base-image", base)
        seeds = (word for seed in "1234" for word in ("--seed", seed))
        measured["four of them, two at a time"] = (*docker, *seeds, "--jobs", "2")
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
    for number in range(ROUNDS + 1):
        for name, command in measured.items():
            seconds = seconds_of(command)
            if number:  # the first round prepares data and builds images
                taken[name].append(seconds)
    least = {name: tuple(map(min, zip(*rounds, strict=True))) for name, rounds in taken.items()}
    pandas = least["`import pandas`"][1]
    return [(name, f"{wall:.2f}", f"{cpu:.2f}", f"{cpu / pandas:.1f}×") for name, (wall, cpu) in least.items()]


def server(home: Path, runs: int) -> list[Sequence[str]]:
    """Measure runs on a server with 8 workers, without the cost of the server itself."""
    spent = {}
    for number in (0, runs):
        before = cpu_of_ended()
        place = home / str(number)
        place.mkdir(parents=True)
        with serving(place, "--workers", "8") as (process, _), client(process) as http:
            wait_for_all(http, [http.post("/v1/runs", json=RUN).json()["id"]])
            began = time.perf_counter()
            wait_for_all(
                http, [http.post("/v1/runs", json={**RUN, "seed": seed}).json()["id"] for seed in range(number)]
            )
            wall = time.perf_counter() - began
        spent[number] = cpu_of_ended() - before
    return [
        (f"{runs} no-op runs, 8 workers: until all were done, s", f"{wall:.1f}"),
        ("CPU of all processes per run, s", f"{(spent[runs] - spent[0]) / runs:.2f}"),
    ]


def restarts(home: Path, times: int) -> list[Sequence[str]]:
    """Measure CPU seconds until a server listens, and requests of a retrying client during kills and restarts."""
    with ServerProcess(home / "runs", "--log-level", "error") as first:
        port, url, starts = first.url.rpartition(":")[2], first.url, []
        answered, lost, over = [], [], threading.Event()

        def ask() -> None:
            with Client(url, first.token) as sdk:
                while not over.is_set():
                    try:
                        answered.append(sdk.me())
                    except Exception as error:  # any error means that the request is lost
                        lost.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for _ in range(times):
                first.kill()
                first.options = ("--log-level", "error", "--port", port)
                first.start()
                starts.append(cpu_of(psutil.Process(first.process.pid)))
                before = len(answered) + len(lost)
                while len(answered) + len(lost) < before + 2:
                    time.sleep(0.05)
        finally:
            over.set()
            asking.join()
    return [
        (f"CPU until the server listens, s (minimum of {times} restarts)", f"{min(starts):.2f}"),
        (f"requests during {times} restarts after `kill -9`: answered / lost", f"{len(answered)} / {len(lost)}"),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(machine() + f"\nLeast of {ROUNDS} alternating rounds.\n")
        print(table(("command", "wall, s", "CPU, s", "relative to `import pandas`"), *commands(Path(folder))))
        rows = [*restarts(Path(folder) / "restarts", 3), *server(Path(folder) / "server", options.runs)]
        print("\n" + table(("server", ""), *rows))


if __name__ == "__main__":
    main()
