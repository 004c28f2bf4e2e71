"""A published set of 1,000 synthetic and technique tasks, each checked by Harbor's own loader.

`python benchmarks/published_set.py OUTPUT [--seeds 200] [--certify 10]` continues an interrupted set; five tasks per
seed. Needs `.ci/validators`. Prints what was written, the time of each stage, and the result of each check.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from _measuring import machine
from mleredux_testing.pytest_plugin import validator

TASKS = (
    *(f"{technique}synthetic-micro-SEED" for technique in ("", "leakage@", "eda@", "metric@")),
    "synthetic-micro-easy-SEED",
)
LOAD = """\
import pathlib, sys, typing, typing_extensions
typing.override, typing.TypedDict = typing_extensions.override, typing_extensions.TypedDict  # Harbor is for Python 3.12
from harbor.models.registry import Registry
from harbor.models.task.task import Task

folder, count = pathlib.Path(sys.argv[1]), 0
for dataset in Registry.from_path(folder / "registry.json").datasets:
    for entry in dataset.tasks:
        path = folder / entry.to_source_task_id().path
        assert Task.is_valid_dir(path) and Task(path).name == entry.name, path
        count += 1
print(count)
"""


def timed(what: str, command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command, print its time, and return its output; exit if it fails."""
    began = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    print(f"{what}: {time.perf_counter() - began:.0f} s, exit code {ended.returncode}", flush=True)
    if ended.returncode:
        sys.exit(ended.stdout + ended.stderr)
    return ended.stdout


def main() -> None:
    """Write and check the set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--certify", type=int, default=10)
    options = parser.parse_args()
    print(machine())
    mleredux = [sys.executable, "-m", "mleredux", "publish"]
    if not (options.output / "SHA256SUMS").exists():
        words = ["--seeds", f"1..{options.seeds}", "--certify", str(options.certify), "-o", str(options.output)]
        print(timed("publish", [*mleredux, *TASKS, *words]), end="")
    print(timed("checksums and disjoint parts", [*mleredux, "--check", str(options.output)]), end="")
    loaded = timed(
        "Harbor's loader", [sys.executable, "-c", LOAD, str(options.output)], {"PYTHONPATH": str(validator())}
    )
    facts = json.loads((options.output / "parts.json").read_text())
    expected = sum(part["tasks"] for part in facts.values())
    print(f"Harbor loads {int(loaded)} of {expected} tasks.")
    sys.exit(int(loaded) != expected)


if __name__ == "__main__":
    main()
