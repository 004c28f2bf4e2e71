"""Facts of `cv`: rows, classes, duplicates, and how the test was split off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from mleredux_techniques._kit.data.dataset import Dataset, GroupColumn
from mleredux_techniques._kit.data.near import duplicates
from mleredux_techniques._kit.data.structure import Structure, candidates, structure_of
from mleredux_techniques._kit.judging.marks import close, counted, facts_of, finding, listing, repeated, same, versus
from mleredux_techniques._kit.judging.results import Facts, Figure
from mleredux_techniques.cv.document import CvAnalysis

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
        **_split(dataset),
    }


def _split(dataset: Dataset) -> dict[str, Any]:
    """Return the groups, the column of time, all that order the split in the same way, and what may be read as groups
    instead.
    """
    if dataset.planted:
        times = [dataset.time] if dataset.time else []
        found = Structure(dataset.group, dataset.time, tuple(times), tuple(times) if dataset.falling else ())
        found = replace(found, groups=(dataset.group,) if dataset.group else ())
    else:
        found = structure_of(dataset)
    return {
        "groups": _groups(dataset, found.groups),
        "time": dataset.time,
        "times": list(found.times),
        "falling": list(found.falling),
        "within": found.within,
        "either": _groups(dataset, [found.alternative] if found.alternative else ()),
    }


def _groups(dataset: Dataset, groups: Sequence[GroupColumn]) -> list[dict[str, Any]]:
    """Return keys with their group counts: those of the split, and others that name the same groups as the first."""
    if not groups:
        return []
    first = groups[0].of(dataset.train)
    keys = [*groups, *(replace(key, column=key.second, second=key.column) for key in groups if key.second)]
    for other in candidates(dataset):
        values = other.of(dataset.train)
        if other not in keys and values.nunique() == first.nunique() == (values + "\0" + first).nunique():
            keys.append(other)
    return [
        {
            "key": asdict(key),
            "train_groups": int(key.of(dataset.train).nunique()),
            "shared_groups": len(set(key.of(dataset.train)) & set(key.of(dataset.test))),
        }
        for key in keys
    ]


def assess(document: CvAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the tables."""
    parts = [
        counted(f"{name} rows", 0.05, getattr(document, f"{name}_rows"), rows, f"There are {rows:,} {name} rows.", 0.01)
        for name in ("train", "test")
        if (rows := truth[f"{name}_rows"])
    ]
    if truth["smallest_class"] is not None:
        told = f"The rarest class has {truth['smallest_class']:,} rows, which limits the number of folds."
        parts.append(counted("smallest class", 0.1, document.smallest_class or 0, truth["smallest_class"], told))
    told = f"The target is {_PROBLEMS[truth['problem']]}."
    return facts_of(
        [
            *parts,
            *repeated(document, truth),
            *_structure(_assess_groups(document, truth), _assess_time(document, truth)),
            same("problem", 0.01, document.problem, truth["problem"], told),
            same("target", 0.01, document.target, truth["target"], f"The column to predict is {truth['target']!r}."),
        ]
    )


def _structure(groups: Figure, time: Figure) -> list[Figure]:
    """Return both parts; a structure that the split does not have takes the credit of the other."""
    false = any(part.decides and not part.score and part.value["true"] is None for part in (groups, time))
    return [replace(part, score=0.0) if false else part for part in (groups, time)]


def _with_key(groups: list[dict[str, Any]], key: dict[str, Any] | None) -> dict[str, Any] | None:
    return next((one for one in groups if one["key"] == key), None)


def _assess_groups(document: CvAnalysis, truth: dict[str, Any]) -> Figure:
    groups, true = document.groups, truth["groups"]
    given = groups.model_dump() if groups else None
    key = groups.key.model_dump() if groups else None
    if not true:
        told = "No column names groups that the split kept together: values of every candidate occur in both tables."
        claimed = groups is not None and _with_key(truth["either"], key) is None
        return finding("groups", 0.4, float(not claimed), versus(given, None), told, true=0, given=int(claimed))
    score, named, first = 0.0, _with_key(true, key), true[0]["key"]
    if groups is not None and named is not None:
        score = 0.5 + 0.25 * close(groups.train_groups, named["train_groups"])
        score += 0.25 * close(groups.shared_groups, named["shared_groups"])
    elif truth["either"] and _ordered_by(document) in truth["times"]:
        score = 1.0
    elif groups is not None and _is_part(key, first):
        score = 0.25
    part = f" ({'after' if first['after'] else 'before'} {first['separator']!r})" if first["separator"] else ""
    pair = f" and {first['second']!r}" if first["second"] else ""
    told = (
        f"The rows of one {first['column']!r}{part}{pair} were kept together: {true[0]['train_groups']:,} groups in "
        f"the training table, {true[0]['shared_groups']:,} of the test's among them."
    )
    return finding("groups", 0.4, score, versus(given, true), told, true=1, given=1)


def _is_part(key: dict[str, Any] | None, true: dict[str, Any]) -> bool:
    """Whether a key is one column of a pair."""
    return key is not None and true["second"] is not None and key["column"] in (true["column"], true["second"])


def _ordered_by(document: CvAnalysis) -> str | None:
    time = document.time
    return time.column if time and (time.test_after_train or time.within) else None


def _assess_time(document: CvAnalysis, truth: dict[str, Any]) -> Figure:
    given, true, times = _ordered_by(document), truth["time"], truth["times"]
    if truth["within"] and document.time is not None:
        given = document.time.column
    as_groups = document.groups is not None and bool(_with_key(truth["either"], document.groups.key.model_dump()))
    if true is None:
        told = "By no column are the test rows later than the training rows."
        claimed = given is not None and not (truth["either"] and given in times)
        return finding("time", 0.4, float(not claimed), versus(given, None), told, true=0, given=int(claimed))
    falling = truth.get("falling", ())
    shown = (f"{name!r}, descending" if name in falling else repr(name) for name in times)
    told = f"The test rows are later than the training rows in {listing(shown)}" + (
        f", within each {truth['within']!r}." if truth["within"] else "."
    )
    score = float(given in times or as_groups)
    if given in times and document.time is not None and document.time.descending != (given in falling):
        score = 0.5
    return finding("time", 0.4, score, versus(given, times), told, true=1, given=1)
