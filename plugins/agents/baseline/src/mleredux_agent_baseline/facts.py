"""Read facts about a task from `task.json` and the description, without reading its tables."""

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
    """A task's submission format and metric, as far as they are stated.

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
