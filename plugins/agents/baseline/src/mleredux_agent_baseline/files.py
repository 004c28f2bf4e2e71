"""Find the tables among the public files, and read facts about a task, without reading tables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

SPOKEN = (
    (r"log(arithmic)?[ -]?loss|cross[ -]entropy", "log-loss"),
    (r"\bAUC\b|area under the (\w+ )?(ROC|receiver)", "roc-auc"),
    (r"mean columnwise root mean squared|\bMCRMSE\b", "mcrmse"),
    (r"root mean squared? log|\bRMSLE\b", "rmsle"),
    (r"root mean squared? error|\bRMSE\b", "rmse"),
    (r"mean absolute error|\bMAE\b", "mae"),
    (r"quadratic weighted kappa", "quadratic-weighted-kappa"),
    (r"\bF1\b|F-score|F1-score", "f1"),
    (r"Matthews", "matthews-correlation"),
    (r"\baccuracy\b|percentage of correct|categori[sz]ation accuracy", "accuracy"),
    (r"\bR2\b|coefficient of determination", "r2"),
)
"""Patterns of metrics in descriptions, the most specific first."""


@dataclass(frozen=True)
class Facts:
    """A task's submission format and metric, if they are stated.

    Attributes:
        metric: Name in lower case with hyphens; empty if unknown.
        lower_is_better: Whether lower scores are better; None if unknown.
    """

    sample: str | None = None
    id_columns: tuple[str, ...] = ()
    target_columns: tuple[str, ...] = ()
    metric: str = ""
    lower_is_better: bool | None = None


def read_facts(task_dir: Path) -> Facts:
    """Return the facts of a task folder; facts from missing or damaged files remain unknown."""
    try:
        facts = json.loads((task_dir / "task.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = {}
    try:
        description = (task_dir / "description.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        description = ""
    direction = facts.get("direction")
    return Facts(
        sample=facts.get("sample"),
        id_columns=tuple(facts.get("id_columns") or ()),
        target_columns=tuple(facts.get("target_columns") or ()),
        metric=normal_name(facts.get("metric") or "") or metric_in(description),
        lower_is_better=None if direction is None else direction == "minimize",
    )


def normal_name(metric: str) -> str:
    """Normalize the name of a metric: `Log Loss` → `log-loss`."""
    return re.sub(r"[^a-z0-9]+", "-", metric.lower()).strip("-")


def metric_in(description: str) -> str:
    """Return the metric that a description names, preferably in its evaluation section; empty if there is none."""
    section = re.search(r"^#+.*(evaluation|metric|scor)[^\n]*\n(.*?)(?=^# |^## |\Z)", description, re.I | re.M | re.S)
    for text in (section.group(2) if section else "", description):
        for pattern, name in SPOKEN:
            if re.search(pattern, text, re.I):
                return name
    return ""


READERS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
PACKED = (".zip", ".gz", ".bz2", ".xz")


class NotForBaseline(Exception):
    """The task has no tables that this agent can learn from; the message states what is missing."""


def table_type(path: Path) -> str | None:
    """Return the suffix of a table, such as `.csv` for `train.csv.zip`; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in READERS else None


def find_tables(data_dir: Path, depth: int = 2) -> list[Path]:
    """Return tables in a folder and its subfolders, largest first; folders with more than 200 files are skipped."""
    files = sorted(data_dir.iterdir())
    if len(files) > 200:
        return []
    tables = [path for path in files if path.is_file() and table_type(path)]
    if depth > 1:
        for folder in files:
            tables += find_tables(folder, depth - 1) if folder.is_dir() else []
    return sorted(tables, key=lambda path: (-path.stat().st_size, path))


def find_sample(data_dir: Path, facts: Facts) -> Path:
    """Return the sample submission: the file named in `task.json`, or found by its name.

    Raises:
        NotForBaseline: There is no sample submission.
    """
    if facts.sample and (data_dir / facts.sample).is_file():
        return data_dir / facts.sample
    named = [
        path for path in find_tables(data_dir) if "sample" in path.name.lower() or "submission" in path.name.lower()
    ]
    if not named:
        raise NotForBaseline("there is no sample submission among the public files")
    return max(named, key=lambda path: ("submission" in path.name.lower(), "sample" in path.name.lower()))
