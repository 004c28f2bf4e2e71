"""What the variants `fixed` share: known faults of the published tasks, mended; so their scores are not comparable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mleredux.plugin.task import Competition, Metric

from mleredux_competition_mlebench.blocks.recipes import Group, TableSplit
from mleredux_competition_mlebench.blocks.workspace import Preparation, Recipe, Workspace

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


def drawn_by_content(recipe: Recipe, tree: str, inside: str = "") -> Recipe:
    """A recipe whose seeds follow from the sizes of raw files, where answers follow from a public seed and no more.

    Everybody with the same raw data gets the same split; without them, nothing tells it.
    """

    def prepare(w: Workspace) -> None:
        if w.settings.salt is None:
            told = repr(w.tree(tree, inside).sizes()).encode()
            w.settings = replace(w.settings, salt=hashlib.blake2b(told).digest())
        recipe(w)

    return prepare


def mended(
    recipe: Recipe | None = None,
    *,
    wrong: str,
    done: str,
    group: Group | None = None,
    metric: Metric | None = None,
    submission: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Fixed:
    """Declare how a published task is mended: other files from the same raw data, another metric, or both.

    Args:
        recipe: Prepares the other files; the published checksums hold no longer.
        wrong: See `Fixed`.
        done: See `Fixed`.
        group: Instead of `recipe`, where the published one is a `TableSplit`: what it should hold out whole, because
            rows of one group tell of one another.
        metric: The metric without the oddities of the published grader.
        submission: Fields of the submission that differ.
        changes: Further fields of the task that differ.
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

    return Fixed(change, wrong, done)
