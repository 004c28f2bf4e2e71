"""Facts of `cv`: rows, classes, duplicates, and how the test was split off."""

from __future__ import annotations

from typing import Any

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.marks import close, component, facts_of, finding, versus
from mleredux_techniques._kit.results import Facts, Figure
from mleredux_techniques._kit.structure import candidates, duplicates
from mleredux_techniques.cv.document import CvAnalysis

TOLERANCES = """\
- `train_rows`, `test_rows` (weight 0.1 each): within 1 % (half within 5 %)
- `smallest_class` (0.2, for classes only): within 2 % (half within 10 %)
- `duplicate_rows`, `shared_rows` (0.15 each): within 2 % (half within 10 %)
- `groups` (0.3): the column and separator that the test was split by, or others that name the same groups; half for
  them, a quarter each for `train_groups` and `shared_groups` within 2 % (half within 10 %)
- `time` (0.2): the column by which the test is the future
- `target`, `problem` (0.01 each): exactly
- of `duplicate_rows`, `shared_rows`, `groups` and `time`, one where there is nothing to find has a twentieth of its
  weight unless something is claimed"""


_PROBLEMS = {"binary": "one of two classes", "multiclass": "one of several classes", "regression": "a number"}


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the facts of the tables."""
    repeated, shared = duplicates(dataset)
    classes = None if dataset.problem == "regression" else int(dataset.train[dataset.target].value_counts().min())
    return {
        "target": dataset.target,
        "problem": dataset.problem,
        "train_rows": len(dataset.train),
        "test_rows": len(dataset.test),
        "smallest_class": classes,
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "groups": _groups(dataset),
        "time": dataset.time,
    }


def _groups(dataset: Dataset) -> dict[str, Any] | None:
    """Return the group column, all equivalent columns, and the group counts."""
    if dataset.group is None:
        return None
    train, test = dataset.group.of(dataset.train), dataset.group.of(dataset.test)
    number = train.nunique()
    same = [dataset.group]
    for other in candidates(dataset):
        if other == dataset.group:
            continue
        values = other.of(dataset.train)
        if values.nunique() == number and (values + "\0" + train).nunique() == number:
            same.append(other)
    return {
        "keys": [[key.column, key.separator] for key in same],
        "train_groups": int(number),
        "shared_groups": len(set(train) & set(test)),
    }


def assess(document: CvAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the tables."""
    parts = [
        component(
            name.replace("_", " "),
            0.1,
            close(getattr(document, name), truth[name], 0.01),
            versus(getattr(document, name), truth[name]),
            f"The {name.partition('_')[0]} table has {truth[name]:,} rows with a target.",
        )
        for name in ("train_rows", "test_rows")
    ]
    if truth["smallest_class"] is not None:
        given = document.smallest_class
        parts.append(
            component(
                "smallest class",
                0.2,
                0.0 if given is None else close(given, truth["smallest_class"]),
                versus(given, truth["smallest_class"]),
                f"The rarest class has {truth['smallest_class']:,} rows, which limits the number of folds.",
            )
        )
    for name, told in (
        ("duplicate_rows", "training rows repeat the features of an earlier one"),
        ("shared_rows", "test rows have the features of a training row"),
    ):
        given, true = getattr(document, name), truth[name]
        parts.append(
            finding(
                name.replace("_", " "),
                0.15,
                close(given, true),
                versus(given, true),
                f"{true:,} {told}.",
                true=true,
                given=given,
            )
        )
    return facts_of(
        [
            *parts,
            _assess_groups(document, truth["groups"]),
            _assess_time(document, truth["time"]),
            *_plain(document, truth),
        ]
    )


def _plain(document: CvAnalysis, truth: dict[str, Any]) -> list[Figure]:
    return [
        component(
            name,
            0.01,
            float(getattr(document, name) == truth[name]),
            versus(getattr(document, name), truth[name]),
            told,
        )
        for name, told in (
            ("problem", f"The target is {_PROBLEMS[truth['problem']]}."),
            ("target", f"The column to predict is {truth['target']!r}."),
        )
    ]


def _assess_groups(document: CvAnalysis, true: dict[str, Any] | None) -> Figure:
    groups = document.groups
    given = groups.model_dump() if groups else None
    if true is None:
        told = "No column names groups that the split kept together: values of every candidate occur in both tables."
        return finding("groups", 0.3, float(groups is None), versus(given, None), told, true=0, given=int(bool(groups)))
    score = 0.0
    if groups is not None and [groups.key.column, groups.key.separator] in true["keys"]:
        score = 0.5 + 0.25 * close(groups.train_groups, true["train_groups"])
        score += 0.25 * close(groups.shared_groups, true["shared_groups"])
    column, separator = true["keys"][0]
    told = (
        f"The rows of one {column!r}" + (f" (before {separator!r})" if separator else "") + " were kept together: "
        f"{true['train_groups']:,} groups in the training table, {true['shared_groups']:,} of the test's among them."
    )
    return finding("groups", 0.3, score, versus(given, true), told, true=1, given=1)


def _assess_time(document: CvAnalysis, true: str | None) -> Figure:
    given = document.time.column if document.time and document.time.test_after_train else None
    if true is None:
        told = "In no time column are the test rows later than the training rows."
    else:
        told = f"The test rows are later than the training rows in {true!r}."
    score = float(given == true)
    return finding(
        "time", 0.2, score, versus(given, true), told, true=int(true is not None), given=int(given is not None)
    )
