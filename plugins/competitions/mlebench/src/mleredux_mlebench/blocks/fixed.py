"""What the variants `fixed` share: known faults of the published tasks, mended; so their scores are not comparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mleredux.models import Competition, Metric

from mleredux_mlebench.blocks.declare import change_preparation
from mleredux_mlebench.blocks.recipes import TableSplit
from mleredux_mlebench.blocks.workspace import Preparation, Recipe

NOTE = "Faults of the published task are mended in it: its score can't be compared with those of the published one."
DESCRIPTIONS = ("description", "description_obfuscated")


@dataclass(frozen=True)
class Fixed:
    """A variant that mends a published task, and says how.

    Attributes:
        change: Makes the mended task.
        wrong: What is wrong in the published task: a sentence for the docs.
        done: What is done about it: a sentence for the docs and for reports.
    """

    change: Callable[[Competition], Competition]
    wrong: str
    done: str

    def __call__(self, task: Competition) -> Competition:
        """The mended task, under a name and a version of its own; told by `description_fixed.md` where there is one."""
        texts = {name: task.description.with_name(f"{name}_fixed.md") for name in DESCRIPTIONS}
        return self.change(task).model_copy(
            update={
                **{name: path for name, path in texts.items() if path.exists()},
                "id": f"{task.id}+fixed",
                "raw_id": task.id,
                "version": f"{task.version}+fixed",
                "variants": {},
                "note": f"{NOTE} {self.done}".strip(),
            }
        )


def held_out_by(recipe: str | Recipe, *, wrong: str = "", done: str = "") -> Fixed:
    """Hold out whole groups, where the published split tears apart rows that tell of one another.

    Args:
        recipe: The column of a `TableSplit` whose values are held out; else the recipe that does it.
        wrong: See `Fixed`.
        done: See `Fixed`.
    """

    def change(task: Competition) -> Competition:
        new = recipe
        if isinstance(new, str):
            assert isinstance(task.prepare, Preparation) and isinstance(task.prepare.recipe, TableSplit)
            new = replace(task.prepare.recipe, group=new)
        return change_preparation(task, new)

    return Fixed(change, wrong, done)


def graded_by(
    metric: Metric, *, wrong: str = "", done: str = "", submission: Mapping[str, Any] | None = None, **changes: Any
) -> Fixed:
    """Grade the same files as the metric is meant, without the oddities of the published grader.

    Args:
        metric: The metric without them.
        wrong: See `Fixed`.
        done: See `Fixed`.
        submission: Fields of the submission that differ.
        changes: Further fields of the task that differ.
    """

    def change(task: Competition) -> Competition:
        asked = task.submission.model_copy(update=dict(submission or {}))
        return task.model_copy(update={"metric": metric, "submission": asked, **changes})

    return Fixed(change, wrong, done)


def prepared_by(recipe: Recipe, *, wrong: str = "", done: str = "", **changes: Any) -> Fixed:
    """Prepare other files from the same raw data, without what gives answers away or went wrong.

    Args:
        recipe: The other recipe.
        wrong: See `Fixed`.
        done: See `Fixed`.
        changes: Further fields of the task that differ.
    """

    def change(task: Competition) -> Competition:
        return change_preparation(task, recipe, **changes)

    return Fixed(change, wrong, done)
