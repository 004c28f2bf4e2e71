"""Declarations of competitions and of their `fixed` variants: only the differences between them.

Facts are read from the data file. The variants correct known faults of published tasks; scores are not comparable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from mleredux.models import KnownLeak
from mleredux.plugin.task import Competition, Metric, Resources, Submission, Thresholds, fingerprint, installation_salt

from mleredux_competition_mlebench.blocks.recipes import Group, TableSplit
from mleredux_competition_mlebench.blocks.workspace import Preparation, Recipe, Workspace
from mleredux_competition_mlebench.facts import PACKAGE, all_facts, board, faults, module_name, private_ids
from mleredux_competition_mlebench.kaggle import KaggleData, KaggleLeaderboard
from mleredux_competition_mlebench.new_ids import BARE

NOTE = "It corrects errors in the published task, so its scores can't be compared with those of that task."
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


def competition(
    id: str,
    *,
    prepare: Recipe,
    metric: Metric,
    id_columns: tuple[str, ...] | None = None,
    target_columns: tuple[str, ...] | None = None,
    ids_fixed: bool = True,
    extra_columns: bool = True,
    types: Mapping[str, Any] | None = None,
    version: str = "1",
    tags: tuple[str, ...] = (),
    fixed: Fixed | Recipe | Metric | None = None,
    other_urls: Mapping[str, str] | None = None,
    public_board: bool = False,
    unstable: tuple[str, ...] = (),
    known_leaks: tuple[KnownLeak, ...] = (),
) -> Competition:
    """Declare a competition of the benchmark.

    Args:
        id: Kaggle's name for the competition, which is the key of its facts.
        prepare: A `TableSplit`, or a function of a `Workspace` with the decorator `recipe`: both also define answers,
            sample, id and target columns.
        metric: The grader and its options.
        id_columns: Columns that identify a row in submissions, if they differ from those of `prepare`.
        target_columns: Columns with the predictions, if they differ.
        ids_fixed: Whether submissions must contain exactly the sample's ids, each once.
        extra_columns: Whether additional columns are ignored (True) or rejected.
        types: Column types, if they can't be inferred from the sample.
        version: Incremented whenever prepared bytes, the metric or the thresholds change.
        fixed: The variant that corrects the task's faults, which `fixed.toml` states: another recipe, another metric,
            or `corrected(...)` if more differs.
        other_urls: URLs of raw files that are not on Kaggle, by raw file name.
        public_board: Whether thresholds and leaderboard come from Kaggle's public board instead of the final one.
        unstable: Prepared files, such as parquet tables, whose bytes depend on library versions: they are not
            compared with the published checksums.
        known_leaks: Columns that reveal the target on the test set too, but would be unknown at prediction time.
    """
    facts, declared = all_facts()[id], cast("Any", prepare)
    if fixed is not None:
        if not isinstance(fixed, Fixed):
            fixed = corrected(metric=fixed) if isinstance(fixed, Metric) else corrected(fixed)
        fixed = Fixed(fixed.change, **faults()[id])
    folder = PACKAGE / "competitions" / module_name(id)
    data = KaggleData(id, facts.get("archive_md5"), tuple((other_urls or {}).items()))
    return Competition(
        id=id,
        version=version,
        title=facts["title"],
        description=folder / "description.md",
        description_obfuscated=folder / "description_obfuscated.md",
        prepare=Preparation(prepare),
        fetch=data,
        check_fetch=data.check,
        fetch_leaderboard=KaggleLeaderboard(id, public=public_board),
        raw_id=id,
        submission=Submission(
            sample=declared.sample,
            id_columns=declared.id_columns if id_columns is None else id_columns,
            target_columns=target_columns or declared.target_columns,
            ids_fixed=ids_fixed,
            extra_columns=extra_columns,
            types=dict(types or {}),
        ),
        answers=declared.answers,
        metric=metric,
        direction=facts["direction"],
        rounding=facts.get("rounding", "decimal"),
        thresholds=Thresholds(**facts["thresholds"]),
        leaderboard=board(id),
        checksums={
            side: {name: md5 for name, md5 in files.items() if name not in unstable}
            for side, files in facts.get("checksums", {}).items()
        },
        resources=Resources(size_gb=facts.get("size_gb")),
        known_leaks=known_leaks,
        category=facts["category"],
        license_source=facts["license_source"],
        complexity=facts.get("complexity"),
        sets=tuple(facts["sets"]),
        tags=tags,
        variants={"private": private} | ({"fixed": fixed} if fixed else {}),
    )


def private(task: Competition) -> Competition:
    """Return the task, split by this installation's secret: answers found or reconstructed elsewhere don't match.

    Test rows get new ids if all references to them can be renamed; their contents stay the same. `private_ids.json`
    states for which tasks.
    """
    assert isinstance(task.prepare, Preparation)
    ids = private_ids(str(task.raw_id))
    recipe_renames = isinstance(task.prepare.recipe, TableSplit) and task.prepare.recipe.renames
    new_ids = ids.get("new_ids", recipe_renames or None)
    pattern = BARE if new_ids is True else new_ids or None
    renames = new_ids is not None
    kept = ids.get("kept_ids") or (None if renames else "the ids")
    salt = installation_salt()
    return task.model_copy(
        update={
            "id": f"{task.id}+private",
            # data that was split with another salt has another version, and is prepared again
            "version": f"{task.version}+private3.{fingerprint(salt)}",
            "prepare": task.prepare.with_settings(salt=salt, id_columns=task.submission.id_columns, id_pattern=pattern),
            "checksums": {},
            "variants": {},
            "note": f"The test set is this installation's own{', with new ids' if renames else ''}: the thresholds and "
            f"leaderboard are those of the published split.{f' The test set keeps {kept}.' if kept else ''} The "
            "contents of rows and files are still Kaggle's, so only a closed network prevents looking them up.",
        }
    )
