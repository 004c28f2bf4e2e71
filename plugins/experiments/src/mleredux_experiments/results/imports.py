"""Import of published results: grading reports of MLE-bench, and submissions, which are graded first."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically

from mleredux_experiments.results.grading_reports import read_report


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
    for origin, content in (found for path in origins for found in _contents(path, data_dir)):
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
    if path.is_file() and path.suffix == ".jsonl":
        yield path, _graded(path, data_dir)
    elif path.is_file():
        yield path, {"competition_reports": read_report(path)}
    elif submissions := sorted(path.glob("*/submission.csv")):
        yield path / "submissions", _grade([(one.parent.name, str(one)) for one in submissions], data_dir)
    else:
        found = sorted(path.glob("*.json"))
        if not found:
            raise MlereduxError(
                f"{path} has neither grading reports (*.json) nor submissions (COMPETITION/submission.csv).",
                hint="Specify files, or a folder that contains them.",
            )
        for one in found:
            yield one, {"competition_reports": read_report(one)}


def _graded(path: Path, data_dir: str | None) -> dict[str, Any]:
    from mleredux.plugin.host import read_jsonl

    return _grade([(one.competition_id, one.submission_path) for one in read_jsonl(path)], data_dir)


def _grade(submissions: Sequence[tuple[str, str | None]], data_dir: str | None) -> dict[str, Any]:
    import mleredux
    from mleredux.plugin.host import aggregate_reports

    reports = [mleredux.grade(path or "no submission", name, data_dir=data_dir) for name, path in submissions]
    return aggregate_reports(reports)
