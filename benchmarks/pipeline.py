"""The pipeline's own share of a run of an agent that does nothing: `uv run python benchmarks/pipeline.py`.

With Docker where an engine answers; the base image is MLEREDUX_BASE_IMAGE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _measuring import alternate, machine, seconds_of, table

RUNS = 5
PLUGIN = """
from mleredux import Agent, Limits, hookimpl
@hookimpl
def mleredux_register_agents():
    return [Agent(id="bench-no-op", title="Nothing", command=("true",), limits=Limits(cpus=1, memory_mb=256))]
"""
EMPTY = "import mleredux._core.cli, mleredux._core.pipeline, mleredux_testing.toys"


def image() -> str | None:
    """An image to start, where there is an engine."""
    named = os.environ.get("MLEREDUX_BASE_IMAGE")
    try:
        answers = subprocess.run(["docker", "version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.SubprocessError):
        answers = False
    return named if answers else None


def main() -> None:
    """Measure and print."""
    program = str(Path(sys.executable).with_name("mleredux"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench_plugin.py").write_text(PLUGIN)
        command = [program, "-p", "mleredux_testing.toys", "-p", f"{folder}/bench_plugin.py", "run", "toy", "--json"]
        command += ["--agent", "bench-no-op", "--runs-dir", f"{folder}/runs", "--data-dir", f"{folder}/data"]
        commands = {
            "a no-op run in the process sandbox": [*command, "--sandbox", "process"],
            "importing what it imports": [sys.executable, "-c", EMPTY],
        }
        if base := image():
            commands["a no-op run in Docker"] = [*command, "--sandbox", "docker", "--base-image", base]
            commands[f"`docker run --rm {base} true`"] = ["docker", "run", "--rm", base, "true"]
        taken = alternate(
            RUNS, **{name: lambda command=command: seconds_of(command) for name, command in commands.items()}
        )
    print(machine())
    print(f"Medians of {RUNS} alternating runs; grading in a process of its own and the report included.\n")
    rows = [(name, f"{wall:.2f}", f"{cpu:.2f}") for name, (wall, cpu) in taken.items()]
    print(table(("what", "wall, s", "CPU of ours, s"), *rows))


if __name__ == "__main__":
    main()
