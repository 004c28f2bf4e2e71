"""What the variants `fixed` share: known faults of the published tasks, mended; so their scores are not comparable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mleredux.models import Competition, Metric

from mleredux_mlebench.blocks.declare import change_preparation
from mleredux_mlebench.blocks.recipes import TableSplit
from mleredux_mlebench.blocks.workspace import Preparation, Recipe

NOTE = "Faults of the published task are mended in it: its score can't be compared with those of the published one."
Variant = Callable[[Any], Any]


def _named(task: Competition) -> dict[str, Any]:
    return {
        "id": f"{task.id}+fixed",
        "raw_id": task.id,
        "version": f"{task.version}+fixed",
        "variants": {},
        "note": NOTE,
    }


def held_out_by(recipe: str | Recipe) -> Variant:
    """Hold out whole groups, where the published split tears apart rows that tell of one another.

    Args:
        recipe: The column of a `TableSplit` whose values are held out; else the recipe that does it.
    """

    def fixed(task: Competition) -> Competition:
        new = recipe
        if isinstance(new, str):
            assert isinstance(task.prepare, Preparation) and isinstance(task.prepare.recipe, TableSplit)
            new = replace(task.prepare.recipe, group=new)
        return change_preparation(task, new, **_named(task))

    return fixed


def graded_by(metric: Metric, **changes: Any) -> Variant:
    """Grade the same files as the metric is meant, without the oddities of the published grader.

    Args:
        changes: Further fields of the task that differ.
    """

    def fixed(task: Competition) -> Competition:
        return task.model_copy(update={**_named(task), "metric": metric, **changes})

    return fixed


def prepared_by(recipe: Recipe, **changes: Any) -> Variant:
    """Prepare other files from the same raw data, without what gives answers away or went wrong.

    Args:
        changes: Further fields of the task that differ.
    """

    def fixed(task: Competition) -> Competition:
        return change_preparation(task, recipe, **_named(task), **changes)

    return fixed
