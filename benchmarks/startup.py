"""Start-up of the command line beside what it can't do without: `uv run python benchmarks/startup.py`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from _measuring import alternate, machine, seconds_of, table

RUNS = 15
TASKS, BUNDLES = 200, 10


def install_bundles(folder: Path) -> None:
    """Ten distributions with twenty tasks each, beside whatever is installed."""
    for bundle in range(BUNDLES):
        name = f"bench_bundle_{bundle}"
        tasks = [
            {
                "id": f"bench-{bundle}-{task}",
                "target": f"{name}:TASK",
                "summary": {"title": "A task", "category": "Tabular", "metric": "accuracy", "direction": "maximize"},
            }
            for task in range(TASKS // BUNDLES)
        ]
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise AssertionError('listing imported a plugin')\n")
        index = {"plugins": {name: {"contract": 2, "hooks": [], "tasks": tasks}}}
        (folder / name / "mleredux.json").write_text(json.dumps(index))
        info = folder / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[mleredux]\n{name} = {name}\n")


def main() -> None:
    """Measure and print."""
    program = str(Path(sys.executable).with_name("mleredux"))
    with tempfile.TemporaryDirectory() as folder:
        install_bundles(Path(folder))
        environment = {**os.environ, "PYTHONPATH": folder}
        commands = {
            "mleredux --help": [program, "--help"],
            "import click, pluggy": [sys.executable, "-c", "import click, pluggy"],
            f"mleredux list ({TASKS} tasks more)": [program, "list"],
            "import click, pluggy, pydantic": [sys.executable, "-c", "import click, pluggy, pydantic"],
        }
        taken = alternate(
            RUNS,
            **{name: lambda command=command: seconds_of(command, environment) for name, command in commands.items()},
        )
    rows = [("command", "wall, ms", "CPU, ms", "beside it, wall", "beside it, CPU")]
    names = list(taken)
    for position, name in enumerate(names):
        wall, cpu = taken[name]
        base = taken[names[position + 1]] if position % 2 == 0 else None
        ratios = (f"{wall / base[0]:.2f}×", f"{cpu / base[1]:.2f}×") if base else ("", "")
        rows.append((f"`{name}`", f"{wall * 1000:.0f}", f"{cpu * 1000:.0f}", *ratios))
    print(machine())
    print(f"Medians of {RUNS} alternating runs.\n")
    print(table(*rows))


if __name__ == "__main__":
    main()
