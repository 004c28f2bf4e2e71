"""Cross-validation: rows, classes, duplicates, the split into training and test, and the accuracy of score estimates.

Naive: KFold with five shuffled folds, regardless of the structure of the rows. Strong: the method that matches how the
test set was split off: by group, by time, or at random. A method that puts rows of one group on both sides, or uses
later rows to predict earlier ones, is exposed by its optimism.

A single private test set of a few hundred rows is noisy, so more test sets are split off the training rows in
the same way (complete groups, the latest rows, or at random), and the score uses the mean difference over all of them.
Only the result on these additional test sets may be passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, GroupColumn, Instance, remembered
from mleredux_techniques._kit.data.near import duplicates
from mleredux_techniques._kit.data.splits import FUTURE, Split, draw, group_codes, pool_of
from mleredux_techniques._kit.data.structure import Structure, candidates, moments, structure_of
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.marks import Efficacy, Figure, Sheet, close, listing
from mleredux_techniques._kit.judging.plans import loss
from mleredux_techniques._kit.judging.reference import Model
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques.cv import document as forms
from mleredux_techniques.cv.folds import CannotSplit, folds

MEASURE = "distance of the estimated score from the test score; 0 is best; score: {metric}"
NAIVE = forms.KFold(name="KFold")
MODELS: tuple[Model, ...] = ("trees", "neighbors")
"""The models that memorize rows, and are therefore misled by unsuitable methods."""
TESTS = 6
"""Number of test sets: the private one, and others that are split off the training rows in the same way."""
SHARE = 0.85
"""Share of rows drawn for each test set, if test sets are split off by time."""
MAX_ROWS = 1_000
MAX_FOLDS = 5
"""Maximum number of folds executed per method, evenly spaced."""
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
    """Return the group keys, the time column, all columns that order the split in the same way, and alternative group
    keys.
    """
    if dataset.planted:
        times, groups = (dataset.time,) if dataset.time else (), (dataset.group,) if dataset.group else ()
        structure = Structure(dataset.group, dataset.time, times, times if dataset.falling else (), groups=groups)
    else:
        structure = structure_of(dataset)
    return {
        "groups": _groups(dataset, structure.groups),
        "time": dataset.time,
        "times": list(structure.times),
        "falling": list(structure.falling),
        "within": structure.within,
        "either": _groups(dataset, [structure.alternative] if structure.alternative else ()),
    }


def _groups(dataset: Dataset, groups: Sequence[GroupColumn]) -> list[dict[str, Any]]:
    """Return keys with their group counts: those of the split, and others that define the same groups as the first."""
    if not groups:
        return []
    first = groups[0].of(dataset.train)
    keys = [*groups, *(replace(key, column=key.second, second=key.column) for key in groups if key.second)]
    for other in candidates(dataset):
        values = other.of(dataset.train)
        if other not in keys and values.nunique() == first.nunique() == (values + "\0" + first).nunique():
            keys.append(other)
    held = [(asdict(key), {*key.of(dataset.train).dropna()}, {*key.of(dataset.test).dropna()}) for key in keys]
    return [{"key": key, "train_groups": len(ours), "shared_groups": len(ours & test)} for key, ours, test in held]


def mark(sheet: Sheet, document: forms.CvAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the tables."""
    for name in ("train", "test"):
        if rows := truth[f"{name}_rows"]:
            sheet.number(f"{name} rows", getattr(document, f"{name}_rows"), rows)
    if (fewest := truth["smallest_class"]) is not None:
        sheet.number("smallest class", document.smallest_class or 0, fewest)
    sheet.duplicates(document, truth)
    parts = _assess_groups(sheet, document, truth), _assess_time(sheet, document, truth)
    # claiming a structure that the split lacks forfeits the credit for the other component
    false = any(part.decides and not part.score and part.value["true"] is None for part in parts)
    sheet.add(*(replace(part, score=0.0) if false else part for part in parts))
    sheet.same("problem", document.problem, truth["problem"], what=_PROBLEMS[truth["problem"]])
    sheet.same("target", document.target, truth["target"])


def _with_key(groups: list[dict[str, Any]], key: dict[str, Any] | None) -> dict[str, Any] | None:
    return next((group for group in groups if group["key"] == key), None)


def _assess_groups(sheet: Sheet, document: forms.CvAnalysis, truth: dict[str, Any]) -> Figure:
    groups, true = document.groups, truth["groups"]
    answer = groups.model_dump() if groups else None
    key = groups.key.model_dump() if groups else None
    if not true:
        claimed = groups is not None and _with_key(truth["either"], key) is None
        return sheet.figure("groups", float(not claimed), answer, None, of=(0, int(claimed)))
    score, named, first = 0.0, _with_key(true, key), true[0]["key"]
    if groups is not None and named is not None:
        score = 0.5 + 0.25 * close(groups.train_groups, named["train_groups"])
        score += 0.25 * close(groups.shared_groups, named["shared_groups"])
    elif truth["either"] and _ordered_by(document) in truth["times"]:
        score = 1.0
    elif key and first["second"] is not None and key["column"] in (first["column"], first["second"]):
        score = 0.25  # one column of a pair
    part = f" ({'after' if first['after'] else 'before'} {first['separator']!r})" if first["separator"] else ""
    pair = f" and {first['second']!r}" if first["second"] else ""
    return sheet.figure("groups", score, answer, true, of=(1, 1), key=f"{first['column']!r}{part}{pair}", first=true[0])


def _ordered_by(document: forms.CvAnalysis) -> str | None:
    time = document.time
    return time.column if time and (time.test_after_train or time.within) else None


def _assess_time(sheet: Sheet, document: forms.CvAnalysis, truth: dict[str, Any]) -> Figure:
    answer, times = _ordered_by(document), truth["times"]
    if truth["within"] and document.time is not None:
        answer = document.time.column
    as_groups = document.groups is not None and bool(_with_key(truth["either"], document.groups.key.model_dump()))
    if truth["time"] is None:
        claimed = answer is not None and not (truth["either"] and answer in times)
        return sheet.figure("time", float(not claimed), answer, None, of=(0, int(claimed)))
    falling = truth.get("falling", ())
    listed = listing(f"{name!r}, descending" if name in falling else repr(name) for name in times)
    score = float(answer in times or as_groups)
    if answer in times and document.time is not None and document.time.descending != (answer in falling):
        score = 0.5
    within = f", within each {truth['within']!r}" if truth["within"] else ""
    return sheet.figure("time", score, answer, times, of=(1, 1), listed=listed, within=within)


def measure(document: forms.CvAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended method, and compare its estimate with the private test score."""
    dataset = instance.dataset
    methods = [NAIVE, best := strong(dataset), _alike(document.method, best)]
    try:
        outcomes = np.array([_once(instance, methods, number) for number in range(TESTS)])
    except CannotSplit as error:
        text = f"The recommended method can't be executed: {error}"
        return Efficacy(0.0, 0.0, parts=[Figure("efficacy", 0.0, text, score=0.0, weight=1.0)])
    rows = len(dataset.train) + len(dataset.test)
    sample = dataset.sample
    if rows > MAX_ROWS:
        sample = f"{sample} Methods were executed on {MAX_ROWS} of {rows} rows.".strip()

    def judged(differences: Array) -> Efficacy:
        choices = [Choice(_distance(values), _spelled(how)) for values, how in zip(differences.T, methods, strict=True)]
        metric = scorer(dataset, instance.base)
        measure = MEASURE.format(metric=metric.title)
        return judge(*choices, overlap=_overlap(dataset), scorer=metric, measure=measure, sample=sample, distances=True)

    result, training = judged(outcomes), judged(outcomes[1:])
    if result.score is None:  # one deviating private test set must not hide the result of the others
        result = training
    mean = round(float(outcomes[:, 2].mean()), 5)
    text = "Loss on the tests minus the recommended method's estimate: if above 0, the method is too optimistic."
    return replace(result, training=training.score, parts=[*result.parts, Figure("optimism", mean, text)])


def gap(instance: Instance) -> Difference:
    """Return the gain of the strong choice over the naive one, on test sets split off the training rows."""
    outcomes = np.array([_once(instance, [NAIVE, strong(instance.dataset)], number) for number in range(1, TESTS)])
    return difference(_distance(outcomes[:, 0]), _distance(outcomes[:, 1]), _overlap(instance.dataset))


def _overlap(dataset: Dataset) -> float:
    return len(dataset.test) / len(dataset.train)


def _distance(differences: Array) -> Array:
    """Return differences, signed so that their mean is not negative: random errors in both directions cancel out."""
    return differences * (1.0 if differences.mean() >= 0 else -1.0)


def strong(dataset: Dataset) -> forms.CvMethod:
    """Return the method that matches how the test set was split off."""
    classes = dataset.problem != "regression"
    if dataset.group is not None:
        key = forms.GroupKey(**asdict(dataset.group))
        if dataset.time is not None:
            return forms.GroupTimeSeriesSplit(name="GroupTimeSeriesSplit", groups=key, **_in_order(dataset))
        return forms.GroupKFold(name="StratifiedGroupKFold" if classes else "GroupKFold", groups=key)
    if dataset.time is not None:
        return forms.TimeSeriesSplit(name="TimeSeriesSplit", **_in_order(dataset))
    return forms.KFold(name="StratifiedKFold") if classes else NAIVE


def _alike(method: forms.CvMethod, best: forms.CvMethod) -> forms.CvMethod:
    """Return the best method if the given one treats rows in the same way: the number of folds is a question of cost,
    which a few test sets could settle only by chance.
    """
    alike = _treatment(method) == _treatment(best) and getattr(method, "gap", 0) == 0
    return best if alike else method


def _treatment(method: forms.CvMethod) -> tuple[Any, ...]:
    """Return how a method treats groups and time, and whether it shuffles rows."""
    parameters = {"shuffle": True, **method.model_dump()}
    return tuple(str(parameters.get(name)) for name in ("groups", "time_column", "descending", "shuffle"))


def _in_order(dataset: Dataset) -> dict[str, Any]:
    return {"time_column": dataset.time, "descending": dataset.falling, "n_splits": 3}


def _rows(dataset: Dataset, number: int) -> tuple[Frame, Array, Array]:
    """Return rows (at most `MAX_ROWS`, in complete groups), and the positions of training and test rows.

    Args:
        number: 0 for the private test set; other numbers for test sets split off the training rows in the same way.
    """
    whole = dataset.rows if number == 0 else dataset.train
    private = np.repeat([False, True], [len(dataset.train), len(whole) - len(dataset.train)])
    kept = draw(group_codes(dataset, whole), len(whole), MAX_ROWS, seed=0)
    whole, private = whole.iloc[kept].reset_index(drop=True), private[kept]
    if number == 0:
        return whole, np.flatnonzero(~private), np.flatnonzero(private)
    rng = np.random.default_rng(number)
    if dataset.time is not None:
        rows = np.sort(rng.permutation(len(whole))[: int(SHARE * len(whole))])
        passed = moments(dataset, whole).fillna(0.0).to_numpy()[rows]
        later = passed > np.quantile(passed, 1 - FUTURE)
        return whole, rows[~later], rows[later]
    groups = group_codes(dataset, whole)
    shuffled = rng.permutation(groups.max() + 1)
    test = np.isin(groups, shuffled[np.cumsum(np.bincount(groups)[shuffled]) > (1 - FUTURE) * len(whole)])
    return whole, np.flatnonzero(~test), np.flatnonzero(test)


def _once(instance: Instance, methods: list[forms.CvMethod], number: int) -> list[float]:
    """Return the loss on one test set minus each method's estimate of it, averaged over the models."""
    dataset = instance.dataset
    whole, rows, test = remembered(dataset, f"rows {number}", lambda: _rows(dataset, number))
    data, classes = pool_of(dataset, whole), dataset.problem != "regression"
    train = whole.iloc[rows].reset_index(drop=True)

    def loss_of(rest: Array, held: Array) -> float:
        return float(loss(instance, data, Split(rest, held, number), {}, MODELS).mean())

    def estimate(method: forms.CvMethod) -> float:
        parts = folds(method, train, data.codes[rows], classes=classes, seed=number)
        spread = np.linspace(0, len(parts) - 1, min(len(parts), MAX_FOLDS)).round()
        chosen = [parts[int(place)] for place in np.unique(spread)]
        losses = [loss_of(rows[rest], rows[held]) for rest, held in chosen]
        return float(np.average(losses, weights=[len(held) for _, held in chosen]))

    truth = remembered(dataset, f"test {number}", lambda: loss_of(rows, test))
    return [truth - remembered(dataset, f"{number} {method!r}", partial(estimate, method)) for method in methods]


def _spelled(method: forms.CvMethod) -> str:
    options = ", ".join(f"{key}={value}" for key, value in method.model_dump(exclude={"name"}).items())
    return f"{method.name}({options})"


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth = instance.truth
    plain = ("target", "problem", "train_rows", "test_rows", "smallest_class", "duplicate_rows", "shared_rows")
    time = {"column": truth["time"], "test_after_train": not truth["within"], "within": truth["within"]}
    time["descending"] = truth["time"] in truth["falling"]
    return {
        **{name: truth[name] for name in plain},
        "groups": next(iter(truth["groups"]), None),
        "time": time if truth["time"] else None,
        "method": strong(instance.dataset).model_dump(),
    }
