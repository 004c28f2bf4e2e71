"""Planted instances: new rows like those of a competition, with findings for every built-in technique.

Everything is drawn from the seed's secret generator; names and positions of columns reveal nothing. An instance is kept
if, on the training rows alone, good advice beats naive advice by `DECIDED` standard errors for each technique;
otherwise the planted data of an undecided technique is redrawn, with everything planted after it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.columns import AREAS
from mleredux_techniques._kit.data.dataset import Dataset, GroupColumn, Instance, load, refusal, save
from mleredux_techniques._kit.data.threads import one_thread
from mleredux_techniques._kit.planting.generation import generated
from mleredux_techniques._kit.planting.instances import assigned
from mleredux_techniques._kit.planting.seeds import Seed

if TYPE_CHECKING:
    from mleredux_techniques._kit.declaration.spec import TechniqueSpec

ORDER = ("cv", "imbalance", "encoding", "scaling", "missing", "leakage")
"""The techniques that each planted instance has findings for, in the order of planting."""
SLOWEST = "cv"
"""The technique whose gap is the slowest to measure."""
DECIDED = 4.0
ATTEMPTS = 8
FOLDER = "planted"
"""The folder with the truth, among the private files of a planted competition."""
ID = "id"


def techniques() -> dict[str, TechniqueSpec]:
    """Return the techniques that share planted instances."""
    return {name: resolve_name(f"mleredux_techniques.{name}.technique:technique") for name in ORDER}


def planted(dataset: Dataset, base: Task, seed: Seed) -> Dataset:
    """Return the planted instance of a seed.

    `planted` records kinds and columns, and under `gaps` the gain of good advice per technique, in standard errors.

    Args:
        dataset: The data of the competition.
        base: The competition.

    Raises:
        NotApplicable: Nothing can be planted in this data.
    """
    best: tuple[int, float] = len(ORDER) + 1, 0.0
    drawn, before, since = dataset, dict[str, Dataset](), None
    for attempt in range(ATTEMPTS):
        states = dict(before)
        draw = draft(dataset, seed.generator(base.id, attempt), states, since)
        gaps = _gaps(draw, base, best, since)
        if gaps is not None and (
            not attempt or set(gaps) == set(drawn.planted["gaps"])
        ):  # dropping groups is no solution
            best, before = _rank(gaps), states
            drawn = replace(draw, planted={**draw.planted, "gaps": gaps, "attempt": attempt})
        undecided = [name for name, gap in drawn.planted["gaps"].items() if gap < DECIDED]
        if not undecided:
            break
        since = undecided[attempt % len(undecided)]
    # its grader may expect the names of the competition
    return renamed(drawn, {ID: next(iter(base.submission.id_columns), ID)})


def renamed(dataset: Dataset, names: dict[str, str]) -> Dataset:
    """Rename columns, including those in the facts."""

    def new(name: str) -> str:
        return names.get(name, name)

    return replace(
        dataset,
        train=dataset.train.rename(columns=names),
        test=dataset.test.rename(columns=names),
        ids=tuple(map(new, dataset.ids)),
        features=tuple(map(new, dataset.features)),
        kinds={new(name): kind for name, kind in dataset.kinds.items()},
        group=GroupColumn(new(dataset.group.column)) if dataset.group else None,
        time=new(dataset.time) if dataset.time else None,
        planted=_renamed(dataset.planted, names),
    )


def draft(
    dataset: Dataset, rng: np.random.Generator, states: dict[str, Dataset] | None = None, since: str | None = None
) -> Dataset:
    """Return one attempt: new rows, with everything planted in turn, and columns renamed and shuffled.

    Args:
        states: The data before each technique was planted: from the previous attempt on entry, from this one on return.
        since: The first technique to plant again; None to start with new rows.
    """
    states = {} if states is None else states
    data = states[since] if since else generated(dataset, rng, rows=2_200 if dataset.problem != "regression" else 1_450)
    kept = ORDER[: ORDER.index(since)] if since else ()
    without = ("imbalance",) if dataset.problem == "regression" or dataset.metric in AREAS else ()
    for name, technique in techniques().items():
        assert technique.plant is not None
        if name not in kept and name not in without:
            states[name] = data
            known = set(data.features)
            data = technique.plant(data, rng)
            added = [column for column in data.features if column not in known]
            if name != "cv" or data.group or data.time:
                about = {**data.planted.get("about", {}), name: added}
                data = replace(data, planted={**data.planted, "about": about})
    return anonymous(data, rng)


def anonymous(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Give all features neutral names in random order, and ids that reveal only the planted facts."""
    order = [str(name) for name in rng.permutation(dataset.features)]
    names = {name: f"x{place:02d}" for place, name in enumerate(order, start=1)}
    if not dataset.ids:
        numbered = assigned(dataset, ID, rng.permutation(len(dataset.train) + len(dataset.test)))
        dataset = replace(numbered, ids=(ID,), kinds={**dataset.kinds, ID: "number"})
    columns = [dataset.ids[0], *order, *dataset.targets]
    kept = {name: kind for name, kind in dataset.kinds.items() if name in columns}
    train, test = dataset.train[columns], dataset.test[columns]
    reduced = replace(dataset, train=train, test=test, ids=dataset.ids[:1], features=tuple(order), kinds=kept)
    return renamed(reduced, names)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Rename the columns in the facts; kinds and classes stay unchanged."""
    if isinstance(value, dict):
        return {key: item if key in ("kinds", "thinned") else _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _gaps(drawn: Dataset, base: Task, best: tuple[int, float], since: str | None) -> dict[str, float] | None:
    """Return the gain of good advice over naive advice on the training rows per technique, in standard errors.

    None if the draft can't rank above the best one so far: further measurements could only lower its rank. The
    previously undecided technique, `since`, comes first, because it is the most likely to be undecided again.
    """
    gaps: dict[str, float] = {}
    with one_thread():
        for name, technique in sorted(techniques().items(), key=lambda item: (item[0] != since, item[0] == SLOWEST)):
            if technique.gap is not None and name in drawn.planted["about"]:
                gaps[name] = round(technique.gap(Instance(view(drawn, name), {}, base)).ratio, 2)
                if _rank(gaps) >= best:
                    return None
    return {name: gaps[name] for name in ORDER if name in gaps}


def _rank(gaps: dict[str, float]) -> tuple[int, float]:
    """Return the number of undecided techniques, and the smallest gap, negated."""
    return sum(gap < DECIDED for gap in gaps.values()), -min(gaps.values())


def view(dataset: Dataset, technique: str) -> Dataset:
    """Return the data on which a technique's recommendations are executed.

    Planted data is reduced to the technique's planted columns; `cv`, the only technique to which groups and time
    matter, also keeps the competition's columns. Other data is returned unchanged.
    """
    about = dataset.planted.get("about")
    if about is None or technique not in about:
        return dataset
    if technique == "cv":
        others = {name for other, names in about.items() if other != "cv" for name in names}
        return replace(dataset, features=tuple(name for name in dataset.features if name not in others))
    features = tuple(name for name in dataset.features if name in about[technique])
    return replace(dataset, features=features, group=None, time=None) if features else dataset


def keep(dataset: Dataset, private: Path) -> None:
    """Write the truth of a planted instance next to its answers."""
    (private / FOLDER).mkdir()
    save(dataset, private / FOLDER)


def kept(prepared: Path) -> Dataset | None:
    """Return the planted instance of a prepared task; None if the task is not planted."""
    folder = prepared / "private" / FOLDER
    return load(folder) if folder.is_dir() else None


def refuse_undecided(dataset: Dataset, technique: str) -> None:
    """Check that a planted instance distinguishes good from bad advice on a technique.

    Raises:
        NotApplicable: No attempt with its seed distinguishes them.
    """
    ratio = dataset.planted.get("gaps", {}).get(technique)
    if ratio is not None and ratio < DECIDED:
        advice = f"under its metric {dataset.metric}, good advice is not significantly better than naive advice"
        why = f"{advice} on this instance; use another seed, or a competition with another metric"
        raise refusal(dataset, technique, why)
