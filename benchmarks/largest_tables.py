"""Compare grading MLE-bench's ten largest tables, at real row counts, with reading their CSV files with pandas.

    python benchmarks/largest_tables.py [--only TEXT] [--rounds N] [--dir DIR] [--markdown docs/benchmarks.md]

For each table, answers and a submission of its real shape are synthesised (see `_tables.py`). One process measures
alternately `pandas.read_csv` of both files and the grader (which also reads them), at an eighth, a quarter, half and
all of the rows. Then whole processes are measured, with their peak memory: `mleredux grade`, and Python that only reads
both files. Aim: grading takes at most three times the time of reading.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measuring import machine, table
from _raw_tables import save_csv
from _tables import TABLES, Table, graded

SHARES = (0.125, 0.25, 0.5, 1.0)
AIM = 3.0
READ = "import sys, pandas\nfor path in sys.argv[1:]: pandas.read_csv(path)"
WATCH = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
spent = [time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]
open(sys.argv[1], "w").write(json.dumps(spent))
sys.exit(code)
"""
"""A small process that starts the measured one, because Linux attributes a parent's memory to a new process."""

PLUGIN = '''
import os
from mleredux import hookimpl
from mleredux.models import Competition
from mleredux._core.plugins.loader import resolve

@hookimpl
def mleredux_register_tasks():
    """The measured task without its published checksums, as the data is synthetic."""
    import mleredux_competition_mlebench
    for ref in mleredux_competition_mlebench.mleredux_register_tasks():
        if ref.id == os.environ["BENCH_TASK"]:
            real = resolve(ref)
            sample = real.submission.model_copy(update={"sample": "sample.csv"})
            yield Competition(id="bench-table", title=real.title, description=real.description, submission=sample,
                metric=real.metric, direction=real.direction, answers=real.answers)
'''
TEXTS = ("text-normalization", "billion", "facebook")
"""Tables with texts that contain commas, quotes or line breaks."""


def write(chosen: Table, folder: Path) -> None:
    """Write answers and submissions at each share of the rows, in the layout for `mleredux grade`."""
    answers, submission = graded(chosen)
    quoted = chosen.task.startswith(TEXTS)
    for share in SHARES:
        place = folder / str(share) / "bench-table" / "prepared"
        (place / "public").mkdir(parents=True)
        parts = [frame[frame.index < len(frame) * share] for frame in (answers, submission)]
        save_csv(place / "private" / chosen.answers_file, [parts[0]], quoted=quoted)
        save_csv(folder / str(share) / "submission.csv", [parts[1]], quoted=quoted)
        save_csv(place / "public" / "sample.csv", [parts[1][:5]], quoted=quoted)


def in_process(task_id: str, submission: Path, answers: Path, rounds: int) -> dict[str, float]:
    """Return median wall and CPU seconds of reading and of grading, measured alternately."""
    import pandas
    from mleredux._core.plugins import current
    from mleredux.models import GradingInput

    task = current().task(task_id)
    grader = task.metric.grader if not isinstance(task.metric.grader, str) else current().grader(task.metric.grader)

    def read() -> None:
        pandas.read_csv(submission)
        pandas.read_csv(answers)

    def grade() -> None:
        grader.score(GradingInput(submission, answers.parent, task, task.metric.options))

    taken: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, work in (("read", read), ("grade", grade)):
            for clock, spent in zip(("wall", "cpu"), timed(work), strict=True):
                if number:  # the first round warms up
                    taken.setdefault(f"{name} {clock}", []).append(spent)
    return {name: statistics.median(all_) for name, all_ in taken.items()}


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return wall and CPU seconds of a function."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def process(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float, float, str]:
    """Run a command; return wall seconds, CPU seconds, peak memory in MB of the largest process, and output."""
    with tempfile.NamedTemporaryFile() as figures:
        finished = subprocess.run(
            [sys.executable, "-S", "-c", WATCH, figures.name, *command],
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            text=True,
        )
        if finished.returncode:
            sys.exit(f"{shlex.join(command)} failed")
        wall, cpu, peak = json.loads(Path(figures.name).read_text())
    return wall, cpu, peak, finished.stdout


def measure(chosen: Table, folder: Path, rounds: int) -> dict[str, Any]:
    """Measure one table; data and results are stored in the folder."""
    kept = folder / "result.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    if not (folder / "made").exists():
        write(chosen, folder)
        (folder / "made").touch()
    (folder / "bench_plugin.py").write_text(PLUGIN)
    program = str(Path(sys.executable).with_name("mleredux"))
    task_figures: dict[str, Any] = {
        "task": chosen.task,
        "rows": max(chosen.answers, chosen.submission),
        "rounds": rounds,
    }
    for share in SHARES:
        place = folder / str(share)
        files = [str(place / "submission.csv"), str(place / "bench-table/prepared/private" / chosen.answers_file)]
        inside = [sys.executable, __file__, "--inside", chosen.task, *files]
        inside += [str(rounds if share == SHARES[-1] else 1)]
        task_figures[str(share)] = json.loads(process(inside)[3])
        task_figures[str(share)]["bytes"] = sum(Path(file).stat().st_size for file in files)
        if share == SHARES[-1]:
            command = [program, "-p", str(folder / "bench_plugin.py"), "grade", files[0], "bench-table", "--json"]
            command += ["--data-dir", str(place)]
            environment = {"BENCH_TASK": chosen.task}
            process(command, environment)  # records the prepared files, once
            *spent, report = process(command, environment)
            task_figures[str(share)]["grade process"] = spent
            task_figures[str(share)]["score"] = json.loads(report)["score"]
            task_figures[str(share)]["read process"] = process([sys.executable, "-c", READ, *files])[:3]
    kept.write_text(json.dumps(task_figures))
    return task_figures


def as_markdown(all_figures: list[dict[str, Any]], command: str) -> str:
    """Return the tables, with a description of the machine and data."""
    speed = [
        ("table", "rows graded", "MB read", "read, s", "grade, s", "grade : read", "by CPU time", "aim of 3", "rounds")
    ]
    whole = [("table", "`mleredux grade`, s", "CPU, s", "only reading, s", "CPU, s", "peak, MB", "reading's peak, MB")]
    growth = [("table", *(f"{share:g} of the rows" for share in SHARES), "growth, last doubling")]
    for task_figures in all_figures:
        name, full = task_figures["task"], task_figures["1.0"]
        wall, cpu = full["grade wall"] / full["read wall"], full["grade cpu"] / full["read cpu"]
        speed.append(
            (
                name,
                f"{task_figures['rows']:,}",
                f"{full['bytes'] / 1e6:,.0f}",
                f"{full['read wall']:.3g}",
                f"{full['grade wall']:.3g}",
                f"{wall:.1f}×",
                f"{cpu:.1f}×",
                "kept" if cpu <= AIM else "missed",
                str(task_figures["rounds"]),
            )
        )
        ours, reading = full["grade process"], full["read process"]
        shown = [f"{value:.1f}" for value in (*ours[:2], *reading[:2])]
        whole.append((name, *shown, f"{ours[2]:,.0f}", f"{reading[2]:,.0f}"))
        taken = [task_figures[str(share)]["grade cpu"] for share in SHARES]
        growth.append((name, *(f"{spent:.3g} s" for spent in taken), f"{taken[-1] / taken[-2]:.1f}×"))
    return "\n\n".join(
        [
            "# Grading the ten largest tables",
            f"Generated by `{command}`. {machine()}",
            "Other work was going on there: CPU seconds, and ratios of what was measured in turns, are what to look "
            "at. Answers and submissions are made up in the real shape at the real row counts, the submission's rows "
            "in another order; reading is `pandas.read_csv` of both files, and part of grading too.",
            "## In one process",
            "Medians of so many rounds in turns, after one that is not counted.",
            table(*speed),
            "## The whole command",
            "Start-up, the grading child without network, and the report included; beside a process that imports "
            "pandas and reads both files. Peak memory is that of the largest process.",
            table(*whole),
            "## Growth with rows",
            "CPU seconds to grade in one process, reading included; one round after one that is not counted, of "
            "all rows the median from above.",
            table(*growth),
        ]
    )


def main() -> None:
    """Measure and print, or write, the tables."""
    parser = argparse.ArgumentParser(description="How fast the largest tables are graded.")
    parser.add_argument("--only", default="", help="Only tasks with this text in their name.")
    parser.add_argument("--dir", type=Path, help="Keeps made-up tables and results for the next time; some 8 GB.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        task, submission, answers, rounds = options.inside
        print(json.dumps(in_process(task, Path(submission), Path(answers), int(rounds))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        all_figures = []
        for chosen in TABLES:
            if options.only in chosen.task:
                folder = (options.dir or Path(scratch)) / chosen.task
                folder.mkdir(parents=True, exist_ok=True)
                all_figures.append(measure(chosen, folder, options.rounds))
                print(json.dumps(all_figures[-1]), file=sys.stderr, flush=True)
    text = as_markdown(all_figures, shlex.join(["python", *sys.argv]))
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
