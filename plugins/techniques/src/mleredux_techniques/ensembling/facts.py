"""Facts of `ensembling`: scores, copies, and models whose score does not hold on the test."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.splits import parts_of
from mleredux_techniques._kit.judging.marks import claimed, component, facts_of, listing, soft_f1, versus
from mleredux_techniques._kit.judging.postprocessing import Known
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques._kit.judging.scorer import Scorer
from mleredux_techniques.ensembling.document import EnsemblingAnalysis

CLOSE = 0.01
FLOOR = 0.1
"""Scores nearer to that of the truth than this share of what there is to learn are as near as this share."""
SAME = 0.995
UNSURE = 0.001
LOST, ERRORS = 0.1, 4.0
"""A score is too good if the test's is worse by more than this share of what there is to learn, and this number of
standard errors."""


def losses(judge: Scorer, known: Known, told: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the losses of predictions on parts of the rows."""
    return np.array([judge.loss(known.frame.iloc[p], known.codes[p], told[p]) for p in parts_of(len(known.codes))])


def describe(ours: dict[str, Known], theirs: dict[str, Known], judge: Scorer) -> dict[str, Any]:
    """Return the facts.

    Args:
        ours: Model → predictions of training rows.
        theirs: Model → predictions of test rows.
    """
    lost, errors = dict[str, float](), dict[str, float]()
    for name, known in ours.items():
        here, there = losses(judge, known, known.told), losses(judge, theirs[name], theirs[name].told)
        lost[name] = float(there.mean() - here.mean())
        errors[name] = float(np.hypot(here.std(ddof=1) / len(here) ** 0.5, there.std(ddof=1) / len(there) ** 0.5))
    usual = max(0.0, float(np.median([*lost.values()])))  # a test that differs costs every model something
    found: dict[str, Any] = {
        name: {
            "score": judge.score(known.frame, known.codes, known.told),
            "optimistic": lost[name] - usual > max(LOST * judge.unit, ERRORS * errors[name], usual),
        }
        for name, known in ours.items()
    }
    names, copies, unsure = list(ours), [], []
    told = np.nan_to_num(np.corrcoef([(ours[name].told - ours[name].told.mean(axis=0)).ravel() for name in names]))
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            near = float(np.atleast_2d(told)[a, b])
            if abs(near - SAME) <= UNSURE:
                unsure.append(sorted([names[a], names[b]]))
            elif near > SAME:
                copies.append(sorted([names[a], names[b]]))
    return {"models": found, "copies": copies, "unsure": unsure, "unit": judge.unit, "perfect": judge.perfect}


def assess(document: EnsemblingAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the scores."""
    true: dict[str, dict[str, Any]] = truth["models"]
    given = {one.model: one for one in document.models}
    known = {name: fact["score"] for name, fact in true.items()}
    far = {n: np.clip(abs(score - truth["perfect"]) / truth["unit"], FLOOR, 1) for n, score in known.items()}
    off = {n: abs(one.score - known[n]) / (truth["unit"] * far[n]) for n, one in given.items() if n in true}
    credits = {name: 1.0 if much <= CLOSE else 0.5 if much <= 5 * CLOSE else 0.0 for name, much in off.items()}
    told = listing(f"{name} {one['score']:.4g}" for name, one in true.items())
    are = {name for name, one in true.items() if one["optimistic"]}
    said = {name for name, one in given.items() if one.optimistic}
    sure = {name for name in said if credits.get(name) == 1}
    pairs, unsure = ({tuple(pair) for pair in truth[key]} for key in ("copies", "unsure"))
    claims = {tuple(sorted(pair)) for pair in document.copies} - unsure
    shown = versus({n: one.score for n, one in given.items()}, {n: round(one["score"], 5) for n, one in true.items()})
    what = "Models whose score does not hold on the test:"
    return facts_of(
        [
            component("scores", 0.3, soft_f1(sum(credits.values()), len(given), len(true)), shown, f"Scores: {told}."),
            claimed("optimistic", 0.4, sure, are, what, false=len(said - sure), decides=True),
            claimed("copies", 0.3, claims, pairs, "Copies:"),
        ]
    )
