"""Grading reports of MLE-bench as results: published rows, and reports provided by users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import current

from mleredux_experiments.results.sources import row_of, task_facts
from mleredux_experiments.results.table import MEDALS, SPLITS, Results, Row

PUBLISHED_FOLDER = Path(__file__).parents[1] / "published"
"""Published results included in this package; its README names the sources."""
_MANY_BYTES = 64 << 20


def benchmark() -> dict[str, list[str]]:
    """Return MLE-bench's tasks by split; empty if `mleredux-competition-mlebench` is not installed."""
    splits: dict[str, list[str]] = {}
    for name, entry in current().entries("tasks").items():
        facts = entry.ref.summary
        if "split75" in facts.get("sets", ()) and facts.get("complexity") in SPLITS:
            splits.setdefault(str(facts["complexity"]), []).append(name)
    return splits


def load_reports(folder: Path) -> Results:
    """Load published results: one subfolder per row, with one grading report of MLE-bench (`*.json`) per run.

    A report lists a row's runs of all tasks; tasks missing from a report count as failures. Files in other formats are
    left out with a note; folders of mleredux runs are not rows.

    Raises:
        NotFound: The folder contains no such reports.
    """
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Specify a folder with one folder per row.")
    rows, notes = [], []
    for place in sorted(path for path in folder.iterdir() if path.is_dir() and not (path / "run.json").exists()):
        number = 0
        for path in sorted(place.glob("*.json")):
            try:
                found = read_report(path)
            except MlereduxError as error:
                notes.append(f"{error.message} It is left out.")
                continue
            rows += [_published(one, place.name, f"{place.name}/{path.stem}", number) for one in found]
            number += 1
    if not rows:
        told = f" {notes[0]}" if notes else ""
        raise NotFound(
            f"{folder} has no grading reports.{told}",
            hint="It needs one folder per row, with one report per run (*.json).",
        )
    return Results(tuple(rows), task_facts(), benchmark(), tuple(notes), by_report=True)


def read_report(path: Path) -> list[dict[str, Any]]:
    """Read the competition reports from a grading report of MLE-bench, a list of such reports, or a single one.

    Raises:
        MlereduxError: The file is not such a report, or lists a competition twice.
    """
    try:
        if path.stat().st_size > _MANY_BYTES:
            raise ValueError("too large")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise MlereduxError(f"{path} can't be read as JSON ({type(error).__name__}).") from error
    listed = content.get("competition_reports", [content]) if isinstance(content, dict) else content
    if not isinstance(listed, list) or content == [] or not all(map(_is_report, listed)):
        raise MlereduxError(
            f"{path} is not an MLE-bench grading report.",
            hint="It must be an object with `competition_reports`, each with `competition_id` and the medals, or their "
            "list alone.",
        )
    names = [one["competition_id"] for one in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MlereduxError(f"{path} lists {twice[0]} more than once.", hint="Split it into one report per run.")
    return listed


def _is_report(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("competition_id"), str):
        return False
    if not all(isinstance(one.get(name), bool) for name in ("any_medal", "gold_medal", "silver_medal", "bronze_medal")):
        return False
    numbers = [one.get(name) for name in ("score", *(f"{name}_threshold" for name in (*MEDALS, "median")))]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in numbers)


def _published(one: Mapping[str, Any], arm: str, run: str, number: int) -> Row:
    spec = {"id": f"{run}/{one['competition_id']}", "task": one["competition_id"], "agent": arm, "seed": number}
    return row_of(spec, one, status="done", cause=None)
