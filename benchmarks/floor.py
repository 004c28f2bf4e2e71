"""Measure the floor of all tasks: scores of trivial submissions that learn nothing.

    python benchmarks/floor.py --golden DIR [--only TEXT] [--markdown docs/reference/floor.md]

The starter tasks and their technique tasks are prepared as usual; if a technique does not apply to a task, faults are
planted. For MLE-bench's competitions, whose data requires an account, the golden cases are graded: small synthetic data
in the layout of the real data. Their scores show that a grader reveals nothing; they do not show how far such a score
is from the published median on real data.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import mleredux
from mleredux.plugin.command import Catalogue, DataStore, current
from mleredux.plugin.task import Task
from mleredux_audit_floor.floor import KINDS, Floor, floor_of

INTRODUCTION = """\
Scores of submissions that involve no learning; the kinds are those of
[`mleredux audit floor`](https://github.com/mleredux/mleredux/tree/main/plugins/audit/floor). A dash means that no
submission of this kind was accepted, and bold means better than the median. On generated miniature data, this says
little about the real task, because the mean is often a good answer for a table of twenty rows. Made with:

```sh no-run: it takes five minutes, and golden cases
python benchmarks/floor.py --golden DIR --markdown docs/reference/floor.md
```
"""
SHOWN = [kind for kind in KINDS if kind != "hunter"]


def golden(folder: Path, only: str, catalogue: Catalogue, scratch: Path) -> Iterator[tuple[Task, Path]]:
    """Yield the task and the prepared files of each golden case."""
    for case in sorted(folder.iterdir()):
        if only not in case.name or not (case / "raw.zip").is_file():
            continue
        task = catalogue.task(case.name)
        overrides = json.loads((case / "expected.json").read_text()).get("overrides") or {}
        with zipfile.ZipFile(case / "raw.zip") as packed:
            packed.extractall(scratch / case.name / "raw")
        prepare = task.prepare.with_settings(test_size=overrides.get("test_size"))
        prepared = scratch / case.name / "prepared"
        prepare(scratch / case.name / "raw", prepared / "public", prepared / "private")
        yield task, prepared


def starter(only: str, catalogue: Catalogue, scratch: Path) -> Iterator[tuple[Task, Path]]:
    """Yield the starter tasks and their technique tasks, with their prepared files."""
    names = catalogue.task_names((), ("starter",))
    pairs = itertools.product(sorted(catalogue.entries("techniques")), names)
    for choices in [
        *((name,) for name in names),
        *((f"{one}@{base}", f"{one}+planted-1@{base}") for one, base in pairs),
    ]:
        if not any(only in name for name in choices):
            continue
        for name in choices:
            try:
                mleredux.prepare(name, data_dir=scratch)
                break
            except mleredux.errors.MlereduxError as error:  # does not apply, except perhaps to planted faults
                print(f"{name}: {error}")
        else:
            continue
        entry = DataStore(scratch).find(task := catalogue.task(name))
        assert entry is not None
        yield task, entry.public.parent


def markdown(parts: dict[str, list[Floor]]) -> str:
    """Return the page."""
    lines = ["# The floor of all tasks", ""]
    lines += [INTRODUCTION]
    for title, floors in parts.items():
        passing = [floor for floor in floors if floor.defects]
        lines += [
            f"## {title}",
            "",
            f"On {len(passing)} of {len(floors)} tasks, at least one of these submissions beats the median.",
            "",
        ]
        lines += [f"| task | metric | median | {' | '.join(SHOWN)} |", "|---" * (3 + len(SHOWN)) + "|"]
        for floor in floors:
            rows = {row.kind: row for row in floor.rows}
            cells = [_cell(rows.get(kind)) for kind in SHOWN]
            median = "–" if floor.median is None else f"{floor.median:g}"
            lines.append(f"| {floor.task} | {floor.metric} | {median} | {' | '.join(cells)} |")
        lines.append("")
        lines += [f"- {floor.task}: {sentence}" for floor in passing for sentence in floor.defects]
        lines += [""] * bool(passing)
    return "\n".join(lines)


def _cell(row: object) -> str:
    score = getattr(row, "score", None)
    if score is None:
        return "–"
    return f"**{score:.5g}**" if row.above_median else f"{score:.5g}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golden", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", metavar="TEXT", help="only tasks whose name holds this")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    catalogue, parts = current(), {}
    with tempfile.TemporaryDirectory() as scratch:
        sources = {"Starter tasks and their techniques": starter(options.only, catalogue, Path(scratch))}
        if options.golden:
            title = "MLE-bench competitions, on miniature synthetic data"
            sources[title] = golden(options.golden, options.only, catalogue, Path(scratch))
        for title, tasks in sources.items():
            parts[title] = []
            for task, prepared in tasks:
                floor = floor_of(task, prepared / "public", prepared / "private", catalogue)
                print(task.id, *(floor.defects or ["sound"]), sep="\n  ", flush=True)
                parts[title].append(floor)
    if options.markdown:
        options.markdown.write_text(markdown(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
