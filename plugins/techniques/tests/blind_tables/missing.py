"""Gaps of other mechanisms. Claims are a mechanism, its columns and an imputation by column; others are as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng
from mleredux_techniques.kit import Dataset

from blind_tables import at_random, houses, patients, with_columns

MEAN = {"name": "SimpleImputer", "strategy": "mean"}
MARKED = {"name": "SimpleImputer", "strategy": "median", "add_indicator": True}
NOTHING: tuple[str, list[str], Any] = ("MCAR", [], MEAN)


def document(claims: dict[str, tuple[str, list[str], Any]], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Counts from the truth, and judgements from the claims."""
    columns = []
    for name, count in truth["counts"].items():
        mechanism, drivers, how = claims.get(name, NOTHING)
        columns.append(
            {"column": name, "missing": count, "mechanism": mechanism, "depends_on": drivers, "imputation": how}
        )
    together = [{"columns": [a, b], "rows": rows} for a, b, rows in truth["together"]]
    return {"complete_rows": truth["complete_rows"], "columns": columns, "together": together}


def _known(rng: Rng, rows: pd.DataFrame, right: Any, wrong: Any = None, metric: str = "roc-auc") -> Known:
    return Known(rows, at_random(rng, len(rows)), right, wrong or dict.fromkeys(right, NOTHING), metric)


def not_before_forty(rng: Rng) -> Known:
    """A screening is offered from 40 on; a few refuse."""
    rows, risk = patients(rng, 1000)
    value = pd.Series((2 + risk + rng.normal(0, 1, 1000)).round(2))
    gone = (rows["age"] < 45) | (rng.random(1000) < 0.06)
    return _known(rng, with_columns(rows, screening=value.where(~gone)), {"screening": ("MAR", ["age"], MARKED)})


def thin_and_heavy(rng: Rng) -> Known:
    """Measured only in the middle of another column."""
    rows, _ = patients(rng, 900)
    bmi = rng.normal(26, 4, 900).round(1)
    value = pd.Series(rng.normal(5.4, 0.8, 900).round(2))
    gone = rng.random(900) < np.where(np.abs(bmi - 26) > 4, 0.75, 0.05)
    rows = with_columns(rows, bmi=bmi, sugar=value.where(~gone))
    return _known(rng, rows, {"sugar": ("MAR", ["bmi"], MARKED)})


def women_of_one_region(rng: Rng) -> Known:
    """Women in towns and men in villages: neither column tells alone."""
    rows, _ = patients(rng, 1200)
    area = rng.choice(["town", "village"], 1200)
    value = pd.Series(rng.gamma(4, 3, 1200).round(2))
    gone = rng.random(1200) < np.where((rows["sex"] == "f") == (area == "town"), 0.55, 0.05)
    rows = with_columns(rows, area=area, income=value.where(~gone))
    return _known(rng, rows, {"income": ("MAR", ["sex", "area"], MARKED)})


def who_came_back(rng: Rng) -> Known:
    """Patients that will come back missed their appointment more often."""
    rows, _ = patients(rng, 800)
    value = pd.Series(rng.normal(70, 9, 800).round(1))
    gone = rng.random(800) < np.where(rows["y"] == 1, 0.5, 0.1)
    return _known(rng, with_columns(rows, score=value.where(~gone)), {"score": ("MAR", ["y"], MARKED)})


def off_the_scale(rng: Rng) -> Known:
    """A meter shows nothing above 60, where the prices are other ones."""
    rows, price = houses(rng, 1000)
    load = rng.normal(50, 10, 1000)
    rows["y"] = (price + 5 * (load - 50)).round(2)
    value = pd.Series(load.round(1)).where(load < 60)
    return _known(rng, with_columns(rows, load=value), {"load": ("MNAR", [], MARKED)}, metric="rmse")


def since_the_update(rng: Rng) -> Known:
    """After an update a sensor stopped; dates are texts of months."""
    rows, _ = houses(rng, 900)
    month = rng.integers(0, 36, 900)
    value = pd.Series(rng.normal(20, 3, 900).round(1))
    gone = rng.random(900) < np.where(month >= 22, 0.8, 0.03)
    texts = [f"{2018 + k // 12}-{k % 12 + 1:02d}" for k in month]
    rows = with_columns(rows, sold=texts, indoor=value.where(~gone))
    return _known(rng, rows, {"indoor": ("MAR", ["sold"], MARKED)}, metric="rmse")


def lost_samples(rng: Rng) -> Known:
    """Samples were dropped at random; the value goes with age."""
    rows, _ = patients(rng, 1000)
    value = pd.Series((0.1 * rows["age"] + rng.normal(0, 1.5, 1000)).round(2))
    rows = with_columns(rows, calcium=value.where(rng.random(1000) > 0.25))
    wrong = {"calcium": ("MAR", ["age"], MEAN)}
    return _known(rng, rows, {"calcium": ("MCAR", [], {"name": "IterativeImputer"})}, wrong)


def two_of_a_device(rng: Rng) -> Known:
    """Devices of one make report neither of two values; its name is one of nine."""
    rows, _ = patients(rng, 900)
    device = rng.choice(list("PQRSTUVWX"), 900)
    gone = rng.random(900) < np.where(np.isin(device, ["R", "V"]), 0.85, 0.02)
    values = {name: pd.Series(rng.normal(1, 0.2, 900).round(3)).where(~gone) for name in ("qt", "qrs")}
    claim = ("MAR", ["device"], MARKED)
    return _known(rng, with_columns(rows, device=device, **values), {"qt": claim, "qrs": claim})


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(not_before_forty, thin_and_heavy, women_of_one_region, who_came_back, off_the_scale, since_the_update),
        *(lost_samples, two_of_a_device),
    )
}
