"""Shared parts of the `fixed` variants, which correct known faults of published tasks; scores are not comparable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mleredux.plugin.task import Competition, Metric

from mleredux_competition_mlebench.blocks.recipes import Group, TableSplit
from mleredux_competition_mlebench.blocks.workspace import Preparation, Recipe, Workspace

NOTE = "It corrects faults of the published task: its score can't be compared with those of the published one."
DESCRIPTIONS = ("description", "description_obfuscated")


@dataclass(frozen=True)
class Fixed:
    """A variant that corrects a published task, with a description of the changes.

    Attributes:
        change: Creates the corrected task.
        wrong: The published task's fault: a sentence for the docs. `competition` reads it from `fixed.toml`.
        done: The correction: a sentence for the docs and for reports, from the same file.
    """

    change: Callable[[Competition], Competition]
    wrong: str = ""
    done: str = ""

    def __call__(self, task: Competition) -> Competition:
        """Return the corrected task, with its own id, version and, if there is one, `description_fixed.md`."""
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


def drawn_by_content(recipe: Recipe, tree: str, inside: str = "") -> Recipe:
    """Derive a recipe's seeds from raw file sizes, for tasks whose answers would otherwise depend only on a public
    seed.

    The same raw data always gives the same split, which can't be derived without the raw data.
    """

    def prepare(w: Workspace) -> None:
        if w.settings.salt is None:
            sizes = repr(w.tree(tree, inside).sizes()).encode()
            w.settings = replace(w.settings, salt=hashlib.blake2b(sizes).digest())
        recipe(w)

    return prepare


def corrected(
    recipe: Recipe | None = None,
    *,
    group: Group | None = None,
    metric: Metric | None = None,
    submission: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Fixed:
    """Declare the correction of a published task: different files from the same raw data, a different metric, or both.

    Args:
        recipe: Prepares the new files; the published checksums no longer apply.
        group: Instead of `recipe`, if the published one is a `TableSplit`: the groups to hold out as units, because
            rows of one group reveal each other's targets.
        metric: The metric without the quirks of the published grader.
        submission: Fields of the submission that differ.
        changes: Other fields of the task that differ.
    """

    def change(task: Competition) -> Competition:
        new = recipe
        if group is not None:
            assert isinstance(task.prepare, Preparation) and isinstance(task.prepare.recipe, TableSplit)
            new = replace(task.prepare.recipe, group=group)
        update = dict(changes)
        if new is not None:
            update |= {"prepare": Preparation(new), "checksums": {}}
        if metric is not None:
            update["metric"] = metric
        if submission is not None:
            update["submission"] = task.submission.model_copy(update=dict(submission))
        return task.model_copy(update=update)

    return Fixed(change)
