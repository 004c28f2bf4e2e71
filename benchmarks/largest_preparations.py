"""Measure preparing MLE-bench's ten largest tables, compared with pandas alone, row by row, and file by file.

    python benchmarks/largest_preparations.py [--task ID]… [--shares 0.125 0.25 0.5 1] [--dir DIR]
        [--results results.json] [--markdown docs/benchmarks.md]

Raw data is synthetic, in its real shape (`_raw_tables`), with a share of its real rows, and prepared with `mleredux
prepare ID --from FOLDER`, as by users. Immediately afterwards, a process reads the same largest tables with pandas and
writes them, which is the minimum for a preparation in pandas. Earlier measurements are stored in `--results`, so that a
long measurement can be made task by task.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measuring import machine, table
from _raw_tables import write_raw
from _tables import TABLES, Table
from mleredux_competition_mlebench.blocks import one_hot
from mleredux_competition_mlebench.blocks.placement import Placer

SHARES = (0.125, 0.25, 0.5, 1.0)
Figures = dict[str, Any]

READ_AND_WRITE = {
    "icecube-neutrinos-in-deep-ice": ("train_meta.parquet",),
    "new-york-city-taxi-fare-prediction": ("train.csv",),
    "h-and-m-personalized-fashion-recommendations": ("transactions_train.csv",),
    "billion-word-imputation": ("train_v2.txt.zip",),
    "text-normalization-challenge-russian-language": ("ru_train.csv.zip",),
    "text-normalization-challenge-english-language": ("en_train.csv.zip",),
    "ventilator-pressure-prediction": ("train.csv",),
    "facebook-recruiting-iii-keyword-extraction": ("Train.zip",),
    "denoising-dirty-documents": ("../data/denoising-dirty-documents/prepared/private/answers.csv",),
    "nfl-player-contact-detection": (
        "train_labels.csv",
        "train_baseline_helmets.csv",
        "train_player_tracking.csv",
        "train_video_metadata.csv",
    ),
}
"""Raw tables for the process that only reads and writes: those that preparation splits."""

PANDAS = """
import sys
import pandas as pd
folder, target, *names = sys.argv[1:]
for name in names:
    if name.endswith(".parquet"):
        pd.read_parquet(f"{folder}/{name}").to_parquet(target)
    elif name.endswith(".txt.zip"):
        pd.read_csv(f"{folder}/{name}", sep="\\1", quoting=3, header=None).to_csv(target + ".zip", index=False)
    else:
        pd.read_csv(f"{folder}/{name}", low_memory=False).to_csv(target, index=False)
"""


def run(command: Sequence[str]) -> Figures:
    """Return wall seconds, CPU seconds and peak memory in GB of a process, which must succeed."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(command[:4])} ended with {process.returncode}:\n{output.read().decode()[-2000:]}")
    return {
        "seconds": time.perf_counter() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "gb": used.ru_maxrss * 1024 / 1e9,
    }


def measure(of: Table, share: float, folder: Path) -> Figures:
    """Prepare a task's generated raw data, and read and write them with pandas."""
    raw, data = folder / "raw", folder / "data"
    raw.mkdir()
    # In a separate process: the peak memory of a child starts at that of its parent.
    run([sys.executable, __file__, "--task", of.task, "--shares", str(share), "--only-write", str(raw)])
    read = [path.stat().st_size for path in raw.rglob("*") if path.is_file()]
    ours = run(
        [sys.executable, "-m", "mleredux", "prepare", of.task, "--from", str(raw), "--data-dir", str(data), "--json"]
    )
    pandas = run([sys.executable, "-c", PANDAS, str(raw), str(folder / "written"), *READ_AND_WRITE[of.task]])
    return {
        "task": of.task,
        "share": share,
        "rows": round((of.raw or of.answers) * share),
        "raw_gb": sum(read) / 1e9,
        "files": len(read),
        "ours": ours,
        "pandas": pandas,
        "load": os.getloadavg()[0],
    }


def row_by_row(labels: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return one-hot answers, set cell by cell as in the published benchmark."""
    answers = pd.DataFrame(0, index=labels.index, columns=list(classes))
    for index, label in labels["label"].items():
        answers.loc[index, label] = 1
    return pd.concat([labels[["id"]], answers], axis=1)


def one_copy_per_file(pairs: Sequence[tuple[str, str]]) -> None:
    """Copy files, one call per file as in the published benchmark."""
    import shutil

    for source, target in pairs:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds of a function."""
    since, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - since, time.process_time() - used


def rivals(folder: Path, rows: int = 20_000, files: int = 20_000) -> list[Figures]:
    """Measure one-hot answers and copying files, each with our method and the published benchmark's."""
    classes = [f"class {number}" for number in range(120)]
    drawn = np.random.default_rng(0).integers(0, len(classes), rows)
    labels = pd.DataFrame({"id": range(rows), "label": np.array(classes, object)[drawn]})
    assert one_hot(labels, ["id"], "label", classes).equals(row_by_row(labels, classes))
    (folder / "raw").mkdir()
    for number in range(files):
        (folder / "raw" / f"{number}.jpg").write_bytes(bytes(3_000 + number % 1_000))
    names = [f"{number}.jpg" for number in range(files)]

    def pairs(target: str) -> list[tuple[str, str]]:
        return [(f"{folder}/raw/{name}", f"{folder}/{target}/{name}") for name in names]

    work: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        f"one-hot answers, {rows:,} rows of {len(classes)} classes": (
            lambda: one_hot(labels, ["id"], "label", classes),
            lambda: row_by_row(labels, classes),
        ),
        f"{files:,} files put into place": (
            lambda: Placer().place_all(pairs("ours")),
            lambda: one_copy_per_file(pairs("theirs")),
        ),
    }
    return [
        {"what": what, "ours": clocked(ours), "theirs": clocked(theirs)} for what, (ours, theirs) in work.items()
    ] + [whole_tree(folder / str(count), count) for count in (files, 4 * files)]


def whole_tree(folder: Path, files: int) -> Figures:
    """Measure preparing a competition of many small images, and copying the same tree with `cp -rl` and `cp -r`."""
    raw = folder / "tree"
    (raw / "train_images").mkdir(parents=True)
    names = [f"{number * 2_654_435_761 % 2**48:012x}" for number in range(files)]
    pd.DataFrame({"id_code": names, "diagnosis": np.arange(files) % 5}).to_csv(raw / "train.csv", index=False)
    for name in names:
        (raw / "train_images" / f"{name}.png").write_bytes(bytes(3_500))
    task = "aptos2019-blindness-detection"
    ways = {
        "ours": [sys.executable, "-m", "mleredux", "prepare", task, "--from", str(raw), "--data-dir", f"{folder}/d"],
        "cp -rl": ["cp", "-rl", str(raw), f"{folder}/linked"],
        "cp -r": ["cp", "-r", str(raw), f"{folder}/copied"],
    }
    taken = {name: run(command) for name, command in ways.items()}
    return {
        "what": f"`mleredux prepare`, {files:,} pictures",
        **{name: (one["seconds"], one["cpu"]) for name, one in taken.items()},
    }


def as_markdown(measured: list[Figures], others: list[Figures]) -> str:
    """Return the page, with a description of the machine and data."""
    rows = [("task", "rows", "raw GB", "seconds", "CPU seconds", "peak GB", "× pandas, CPU", "× pandas, peak", "load")]
    growth = [("task", "rows", "CPU seconds grow", "peak memory grows")]
    for of in TABLES:
        mine = sorted((one for one in measured if one["task"] == of.task), key=lambda one: float(one["share"]))
        for one in mine:
            ours, pandas = one["ours"], one["pandas"]
            rows.append(
                (
                    f"`{of.task}`",
                    f"{one['rows']:,}",
                    f"{one['raw_gb']:.2f}",
                    f"{ours['seconds']:.0f}",
                    f"{ours['cpu']:.0f}",
                    f"{ours['gb']:.2f}",
                    f"{ours['cpu'] / pandas['cpu']:.2f}",
                    f"{ours['gb'] / pandas['gb']:.2f}",
                    f"{one['load']:.0f}",
                )
            )
        if len(mine) > 1:
            first, last = mine[0], mine[-1]
            growth.append(
                (
                    f"`{of.task}`",
                    f"×{last['rows'] / first['rows']:.1f}",
                    f"×{last['ours']['cpu'] / first['ours']['cpu']:.1f}",
                    f"×{last['ours']['gb'] / first['ours']['gb']:.1f}",
                )
            )
    against = [("what", "ours, s (CPU)", "rival", "s (CPU)", "times as fast, CPU")]
    named = {"theirs": "row by row, file by file", "cp -rl": "`cp -rl`", "cp -r": "`cp -r`"}
    for one in others:
        for rival, name in named.items():
            if rival in one:
                ours, theirs = one["ours"], one[rival]
                against.append(
                    (
                        one["what"],
                        f"{ours[0]:.2f} ({ours[1]:.2f})",
                        name,
                        f"{theirs[0]:.2f} ({theirs[1]:.2f})",
                        f"{theirs[1] / ours[1]:.2g}",
                    )
                )
    return "\n".join(
        [
            "# Preparing the largest tables",
            "",
            "Generated by `python benchmarks/largest_preparations.py --markdown docs/benchmarks.md`.",
            f"{machine()} Other work was going on there all the time: CPU seconds and ratios are what compares.",
            "",
            "Raw data is synthetic, in its real shape, and prepared by `mleredux prepare ID --from FOLDER`, start-up "
            "included. *× pandas* compares with a process that, right afterwards, reads the same tables with pandas "
            "and writes them again (icecube: parquet; billion-word: lines in a zip; denoising: its answers): "
            "preparing also splits, writes test, answers and sample, and checks. Peak is the largest resident memory. "
            "Measured in several calls with `--results`; tasks and row counts that are missing took too long there.",
            "",
            table(*rows),
            "",
            "## Growth",
            "",
            "From the smallest to the largest share measured.",
            "",
            table(*growth),
            "",
            "## Rivals",
            "",
            "The published benchmark sets one-hot answers cell by cell and copies files by one call each; `cp -rl` "
            "links, as ours does where it can, `cp -r` copies. Start-up (Python, pandas) is "
            "more than a second of ours. Reads of 4 KB, another rival, are in "
            "[How fast files are checked](#how-fast-files-are-checked).",
            "",
            table(*against),
            "",
        ]
    )


def main() -> None:
    """Run the requested measurements, and print or write the page."""
    parser = argparse.ArgumentParser(description="Preparing the ten largest tables.")
    parser.add_argument("--task", action="append", choices=[one.task for one in TABLES])
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    parser.add_argument("--rivals", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--dir", type=Path, help="Where the files are made for the while.")
    parser.add_argument("--results", type=Path, help="Figures of earlier calls, to go on with.")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--only-write", type=Path, help="Write the one task's raw data there, and end.")
    options = parser.parse_args()
    if options.only_write:
        (one,) = (of for of in TABLES if of.task in options.task)
        write_raw(one, options.only_write, *options.shares)
        return
    known = json.loads(options.results.read_text()) if options.results and options.results.exists() else {}
    measured: list[Figures] = known.get("measured", [])
    others: list[Figures] = known.get("rivals", [])
    for share in options.shares:
        for of in TABLES:
            if options.task is None or of.task in options.task:
                with tempfile.TemporaryDirectory(dir=options.dir) as folder:
                    result = measure(of, share, Path(folder))
                measured = [one for one in measured if (one["task"], one["share"]) != (of.task, share)] + [result]
                print(json.dumps(result), flush=True)
                if options.results:
                    options.results.write_text(json.dumps({"measured": measured, "rivals": others}))
    if options.rivals:
        with tempfile.TemporaryDirectory(dir=options.dir) as folder:
            others = rivals(Path(folder))
        if options.results:
            options.results.write_text(json.dumps({"measured": measured, "rivals": others}))
    page = as_markdown(measured, others)
    print(page)
    if options.markdown:
        options.markdown.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
