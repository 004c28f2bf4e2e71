"""Predictions: what is planted in them is found, and post-processing undoes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mleredux_techniques._kit.data.splits import outputs
from mleredux_techniques._kit.declaration.preparation import _ten_digits
from mleredux_techniques._kit.judging.postprocessing import Known, applied
from mleredux_techniques._kit.judging.predictions import DIGITS, KEY, distorted, listed
from mleredux_techniques.calibration.grading import describe
from mleredux_techniques.ensembling import grading
from mleredux_techniques.kit import scorer
from technique_documents import TECHNIQUES
from technique_documents.bases import base_of
from technique_documents.source import source
from test_techniques_debugging import table

ROWS = 1_500


def honest(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Probabilities of three classes, and classes drawn by them."""
    rng = np.random.default_rng(seed)
    told = rng.dirichlet([1.2, 0.9, 0.6], ROWS)
    return told, (rng.random((ROWS, 1)) > told.cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize(
    ("how", "verdict", "biased"),
    [
        ({}, "calibrated", {}),
        ({"power": 3.0}, "overconfident", None),
        ({"power": 0.4}, "underconfident", None),
        ({"weights": [3.0, 1.0, 1.0]}, None, {"a": "too_often", "b": "too_seldom", "c": "too_seldom"}),
    ],
)
def test_planted_distortions_are_what_calibration_finds(
    how: dict[str, Any], verdict: str | None, biased: dict[str, str] | None
) -> None:
    told, codes = honest()
    found = describe(Known(distorted(told, how), codes, None), ("a", "b", "c"))  # type: ignore[arg-type]
    assert verdict is None or found["verdict"] == verdict
    assert biased is None or {**found["classes"], **{name: biased[name] for name in found["open"] if biased}} == biased


@pytest.mark.parametrize(("how", "step"), [({"power": 3.0}, "temperature"), ({"weights": [4.0, 1.0, 0.5]}, "sigmoid")])
def test_steps_undo_distortions(how: dict[str, Any], step: Any) -> None:
    dataset = table("multiclass")
    judge = scorer(dataset, base_of(dataset))
    told, codes = honest()
    made = distorted(told, how)
    fit = Known(made[:1000], codes[:1000], None)  # type: ignore[arg-type]
    undone = applied([step], fit, made[1000:], judge)
    before, after = np.abs(made[1000:] - told[1000:]).mean(), np.abs(undone - told[1000:]).mean()
    assert after < 0.3 * before


@pytest.mark.parametrize("problem", ["multiclass", "regression"])
def test_no_post_processing_is_right_whatever_was_planted(problem: str) -> None:
    """Who knows the source code, but not the predictions, has at most four fifths of what the best steps gain."""
    dataset, rng = table(problem), np.random.default_rng(0)
    judge, gains = scorer(dataset, base_of(dataset)), []
    steps = ["mean", "scale", "round"] if problem == "regression" else ["temperature", "sigmoid", "isotonic"]
    for _ in range(30):
        made = TECHNIQUES["metric"].plant(dataset, rng)  # type: ignore[misc]
        if problem == "regression":
            codes = made.train[made.target].to_numpy(dtype=float)
            truth = codes[:, None]
            told = truth + 0.5 * codes.std() * rng.standard_normal(truth.shape)
        else:
            told, codes = honest(int(rng.integers(99)))
            truth = np.eye(3)[codes]
        shown, cut = distorted(told, made.planted[KEY], truth), len(codes) // 2
        fit = Known(shown[:cut], codes[:cut], dataset.train.head(cut))
        lost = [_lost(applied([step], fit, shown[cut:], judge), codes[cut:]) for step in ["none", *steps]]  # type: ignore[list-item]
        gains.append(np.clip((lost[0] - np.array(lost)) / (lost[0] - min(lost)), 0, 1))
    assert np.mean(gains, axis=0).max() <= 0.8, dict(zip(steps, np.mean(gains, axis=0)[1:], strict=True))
    best = {"constant": 0.0, "asks": "numbers" if problem == "regression" else "probabilities"}
    assert set(source("metric", best, {}, {})["steps"]) < set(steps)


def _lost(told: np.ndarray[Any, Any], codes: np.ndarray[Any, Any]) -> float:
    if told.shape[1] == 1:
        return float(np.sqrt(((told[:, 0] - codes) ** 2).mean()))
    return float(-np.log(told[np.arange(len(codes)), codes]).mean())


def test_copies_and_models_that_were_fitted_to_their_rows_are_found() -> None:
    dataset = table("multiclass", 900)
    judge = scorer(dataset, base_of(dataset))
    codes = outputs(dataset, dataset.train)[1][:400]
    truth, rng = np.eye(3)[codes], np.random.default_rng(0)
    honest = 0.5 * truth + 0.5 * rng.dirichlet([1, 1, 1], len(codes))
    noise = rng.dirichlet([1, 1, 1], len(codes))

    def known(told: np.ndarray[Any, Any]) -> Known:
        return Known(told, codes, dataset.train.head(400))

    ours = {"oak": known(honest), "fir": known(honest + 1e-4), "elm": known(0.8 * truth + 0.2 * noise)}
    found = grading.describe(ours, {"oak": known(honest), "fir": known(honest), "elm": known(noise)}, judge)
    assert found["copies"] == [["fir", "oak"]]
    assert [name for name, one in found["models"].items() if one["optimistic"]] == ["elm"]


def test_steps_of_another_kind_of_prediction_are_errors() -> None:
    dataset = table("multiclass")
    told, codes = honest()
    with pytest.raises(ValueError, match="median does not apply"):
        applied(["median"], Known(told, codes, None), told, scorer(dataset, base_of(dataset)))  # type: ignore[arg-type]


def test_the_last_bits_of_a_sum_change_no_byte() -> None:
    """Predictions of trees are often halfway between two rounded numbers; sums differ between versions of NumPy."""
    ties = (np.arange(0, 10_000, 7) + 0.5) * 10.0**-DIGITS + 100
    near = [np.nextafter(ties, ties + side) for side in (-1, 0, 1)]
    written = [listed([], {"model": values})["values"]["model"] for values in near]
    assert written[0] == written[1] == written[2]
    assert near[0].round(DIGITS).tolist() != near[2].round(DIGITS).tolist(), "plain rounding would do"
    means = ("96.06827082365159", "96.0682708236515")  # of the same numbers, with NumPy 1.26 and 2.4
    assert len({_ten_digits(mean) for mean in means}) == 1
