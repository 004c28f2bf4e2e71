"""Techniques as short declarations: a package whose modules define the parts under conventional names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.columns import REGRESSION_METRICS
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.data.discovery import has_table
from mleredux_techniques._kit.declaration.spec import WITH_TABLES, TechniqueSpec
from mleredux_techniques._kit.judging.marks import Facts, Sheet, declaration
from mleredux_techniques._kit.vocabulary.document import Document

Reason = Callable[[Task, bool], str | None]
Plant = Callable[[Dataset, np.random.Generator], Dataset]
PARTS = {
    "document": ("recommend",),
    "grading": ("truth", "mark", "files", "measure", "recommend", "reference", "gap", "solution"),
}
"""Maps each module to the fields of a `TechniqueSpec` that it may define; those of its `STUDY` are the default. Instead
of `assess`, it defines `mark(sheet, document, truth)`, which fills the sheet."""


def declared(package: str, plant: Plant, reason: Reason | None = None) -> TechniqueSpec:
    """Return the technique of a package: named like it, with the fields of its `technique.toml` and of its modules.

    Args:
        package: The package's full name. Its module `document` defines exactly one `Document`.
        plant: As in `TechniqueSpec`.
        reason: `reason(base, planted)` returns why the question does not apply to a task; None if it may apply. The
            default depends on `needs_table` in `technique.toml`, which names the properties that data without a table
            lacks.
    """
    name, fields = package.rpartition(".")[2], dict[str, Any]()
    for module, parts in PARTS.items():
        imported = import_module(f"{package}.{module}")
        sources = getattr(imported, "STUDY", None), imported
        fields |= {part: getattr(source, part) for source in sources for part in parts if hasattr(source, part)}
        if module == "document":
            fields["document"] = next(
                part for part in vars(imported).values() if isinstance(part, type) and part.__base__ is Document
            )
            fields["folder"] = Path(str(imported.__file__)).parent
    fields |= {key: value for key, value in declaration(fields["folder"]).items() if key != "questions"}
    if what := fields.pop("needs_table", None):
        reason, fields["categories"] = without_table(what), WITH_TABLES

    mark = fields.pop("mark")

    def assess(document: Any, truth: dict[str, Any]) -> Facts:
        sheet = Sheet(str(fields["folder"] / "grading.py"))
        mark(sheet, document, truth)
        return sheet.facts()

    def refuse(base: Task, planted: bool) -> str | None:
        refusal = reason(base, planted) if reason else None
        return refusal and f"{name} does not apply to {base.id}: {refusal}."

    return TechniqueSpec(id=name, assess=assess, refuse=refuse, plant=plant, **fields)


def of_numbers(base: Task, planted: bool) -> str | None:
    """Return the reason why a question about classes does not apply; None if it may apply."""
    metric = base.metric.id
    return f"{metric} is a regression metric" if metric in REGRESSION_METRICS else None


def without_table(what: str) -> Reason:
    """Return a function that gives the reason why a question about a table does not apply.

    Args:
        what: What data of other kinds lacks, for the message.
    """

    def reason(base: Task, planted: bool) -> str | None:
        applies = planted or has_table(base)
        return None if applies else f"its category is {base.category}, so its data has no {what}"

    return reason
