"""Measure start-up of the command line, compared with its minimum: `uv run python benchmarks/startup.py`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from _measuring import alternate, machine, seconds_of, table

RUNS = 15
TASKS, BUNDLES = 200, 10
BUNDLE = """
from pathlib import Path

from mleredux.plugin import hookimpl
from mleredux.plugin.grader import Grader
from mleredux.plugin.task import Competition, Metric

GRADER = Grader(id="{name}", title="G", direction="maximize", score=lambda given: 1.0)


@hookimpl
def mleredux_register_tasks():
    return [
        Competition(id=f"{name}-{{number}}", title="A task", category="Tabular", description=Path("d.md"),
                    metric=Metric(grader=GRADER), direction="maximize")
        for number in range({tasks})
    ]
"""


def install_bundles(folder: Path) -> None:
    """Install ten distributions with twenty tasks each, in addition to the installed ones."""
    for bundle in range(BUNDLES):
        name = f"benchbundle{bundle}"
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(BUNDLE.format(name=name, tasks=TASKS // BUNDLES))
        info = folder / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[mleredux]\n{name} = {name}\n")


def main() -> None:
    """Measure and print."""
    program = str(Path(sys.executable).with_name("mleredux"))
    with tempfile.TemporaryDirectory() as folder:
        install_bundles(Path(folder))
        environment = {**os.environ, "PYTHONPATH": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        first = seconds_of([program, "list"], environment)
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
    print(f"\nThe first command after an installation, which imports every plugin once: {first[0] * 1000:.0f} ms.")


if __name__ == "__main__":
    main()
