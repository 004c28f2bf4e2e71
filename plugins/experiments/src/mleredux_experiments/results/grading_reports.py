"""MLE-bench grading reports as results: published rows, and reports or submissions that users import."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically

from mleredux_experiments.results.sources import Ending, row_of, task_facts
from mleredux_experiments.results.table import SPLITS, Results, grouped

PUBLISHED_FOLDER = Path(__file__).parents[1] / "published"
"""Published results included in this package; its README names the sources."""


def benchmark() -> dict[str, list[str]]:
    """Return MLE-bench's tasks by split; empty if `mleredux-competition-mlebench` is not installed."""
    tasks = ((name, entry.ref.summary) for name, entry in current().entries("tasks").items())
    named = ((str(facts.get("complexity")), name) for name, facts in tasks if "split75" in facts.get("sets", ()))
    return grouped((split, name) for split, name in named if split in SPLITS)


def load_reports(folder: Path) -> Results:
    """Load published results: one subfolder per row, with one MLE-bench grading report (`*.json`) per run.

    A report lists a row's runs of all tasks; tasks missing from a report count as failures. Files in other formats are
    left out with a note; folders of mleredux runs are not rows.

    Raises:
        NotFound: The folder contains no such reports.
    """
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Specify a folder with one folder per row.")
    from mleredux_grading import read_report

    rows, notes = [], []
    for place in sorted(path for path in folder.iterdir() if path.is_dir() and not (path / "run.json").exists()):
        number = 0
        for path in sorted(place.glob("*.json")):
            try:
                reports = read_report(path)
            except MlereduxError as error:
                notes.append(f"{error.message} It is skipped.")
                continue
            for report in reports:
                task = report["competition_id"]
                spec = {"id": f"{place.name}/{path.stem}/{task}", "task": task, "agent": place.name, "seed": number}
                rows.append(row_of(spec, report, Ending("done")))
            number += 1
    if not rows:
        note = f" {notes[0]}" if notes else ""
        message = f"{folder} has no grading reports.{note}"
        raise NotFound(message, hint="It needs one folder per row, with one report per run (*.json).")
    return Results(tuple(rows), task_facts(), benchmark(), tuple(notes), by_report=True)


def import_reports(
    origins: Sequence[Path], into: Path, name: str | None = None, data_dir: str | None = None
) -> list[tuple[Path, Path]]:
    """Copy reports into a reports folder, with one subfolder per row and one report per run.

    A report that is imported twice is stored once. Nothing is written if any report is invalid.

    Args:
        name: Name of the row; None: the name of each file's folder.
        data_dir: Location of the answers, for grading submissions.

    Raises:
        MlereduxError: A file is not a grading report, or the competition of a submission is unknown.
    """
    ready: list[tuple[Path, Path, str]] = []
    for origin, content in (pair for path in origins for pair in _contents(path, data_dir)):
        text = json.dumps(content, indent=1) + "\n"
        row = re.sub(r"[^\w.+-]+", "-", name or origin.resolve().parent.name).strip(".-") or "imported"
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        ready.append((origin, into / row / f"{digest}.json", text))
    for _, path, text in ready:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    return [(origin, path) for origin, path, _ in ready]


def _contents(path: Path, data_dir: str | None) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the grading reports in a file or folder."""
    from mleredux_grading import Listed, grade_listed, read_jsonl, read_report

    if path.is_file() and path.suffix == ".jsonl":
        yield path, grade_listed(read_jsonl(path), data_dir)
    elif path.is_file():
        yield path, {"competition_reports": read_report(path)}
    elif submissions := sorted(path.glob("*/submission.csv")):
        listed = [Listed(competition_id=file.parent.name, submission_path=str(file)) for file in submissions]
        yield path / "submissions", grade_listed(listed, data_dir)
    elif files := sorted(path.glob("*.json")):
        for file in files:
            yield file, {"competition_reports": read_report(file)}
    else:
        message = f"{path} has neither grading reports (*.json) nor submissions (COMPETITION/submission.csv)."
        raise MlereduxError(message, hint="Specify files, or a folder that contains them.")
