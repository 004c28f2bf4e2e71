"""Tables of which it is known what a column holds. Claims are about all columns: what they say instead of the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from mleredux_techniques.eda.grading import solution
from mleredux_techniques.kit import Dataset, Instance
from technique_documents.bases import base_of

from known_tables import ROWS, Array, Known, Rng, base, random_test
from known_tables.pictures import EDA

PLAIN: dict[str, Any] = {"sentinel": None, "relation": "none", "like": None, "drift": None}


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The truth of all columns, with claims about `it`; without `it`, about all columns."""
    made = solution(Instance(dataset, {**truth, "strong": []}, base_of(dataset)))["columns"]
    about = ["it"] if "it" in dataset.features else list(dataset.features)
    columns = [{**one, **(claims if one["column"] in about else {})} for one in made]
    return {"columns": [one for one in columns if one["column"] in about or not claims.get("alone")]}


def _known(rng: Rng, values: Array, right: dict[str, Any], wrong: dict[str, Any], test: Array | None = None) -> Known:
    """The other columns are noise, so that `it` is all there is to find."""
    rows = base(rng)[["id", "y"]].assign(noise=rng.normal(size=ROWS).round(3), it=values)
    return Known(rows, random_test(rng) if test is None else test, right, wrong)


def far_number(rng: Rng) -> Known:
    values = np.where(rng.random(ROWS) < 0.07, 7777.0, rng.normal(50, 9, ROWS).round(2))
    return _known(rng, values, {"type": "number", "sentinel": 7777.0}, {"sentinel": None})


def bounded_number(rng: Rng) -> Known:
    """Repeated at its end, and honest."""
    values = np.minimum(rng.normal(50, 9, ROWS), 58).round(2)
    return _known(rng, values, {"sentinel": None}, {"sentinel": 58.0})


def weights_with_units(rng: Rng) -> Known:
    values = np.array([f"{one:.1f} kg" for one in rng.normal(70, 9, ROWS)], dtype=object)
    return _known(rng, values, {"type": "number_as_text"}, {"type": "category", "relation": "values", "drift": 0.4})


def codes_with_digits(rng: Rng) -> Known:
    values = np.array([f"K{one}" for one in rng.integers(100, 160, ROWS)], dtype=object)
    return _known(rng, values, {"type": "category"}, {"type": "number_as_text", "relation": "values", "drift": 0.4})


def both_ends(rng: Rng) -> Known:
    """Very small and very large values are of one class."""
    values = rng.normal(10, 2, ROWS)
    known = _known(rng, values.round(3), {"relation": "nonmonotone"}, {"relation": "monotone"})
    known.rows["y"] = (np.abs(values - 10) + rng.normal(0, 0.8, ROWS) > 1.6).astype(int)
    return known


def later_levels(rng: Rng) -> Known:
    test = random_test(rng)
    values = (rng.normal(5, 1, ROWS) + 0.6 * test).round(3)
    return _known(rng, values, {}, {"drift": None}, test)


def other_towns(rng: Rng) -> Known:
    test = random_test(rng)
    towns = np.array(["Ghent", "Lille", "Namur", "Trier"], dtype=object)
    values = np.where(test, rng.choice(towns, ROWS, p=[0.1, 0.2, 0.3, 0.4]), rng.choice(towns, ROWS))
    return _known(rng, values, {"type": "category"}, {"drift": None}, test)


def longer_texts(rng: Rng) -> Known:
    test = random_test(rng)
    words = np.array(["the", "box", "was", "late", "and", "did", "not", "hold", "but", "they", "sent", "another"])
    sizes = rng.integers(8, 20, ROWS) + 6 * test
    values = np.array([" ".join(rng.choice(words, size)) for size in sizes], dtype=object)
    return _known(rng, values, {"type": "text"}, {"drift": None}, test)


def another_unit(rng: Rng) -> Known:
    known = _known(
        rng, rng.normal(10, 2, ROWS).round(3), {"like": "noise"}, {"like": None, "relation": "values", "drift": 0.3}
    )
    known.rows["noise"] = (2.2 * known.rows["it"] + rng.normal(0, 0.5, ROWS)).round(3)
    return known


KINDS = {
    kind.__name__: kind
    for kind in (
        *(far_number, bounded_number, weights_with_units, codes_with_digits, both_ends, later_levels, other_towns),
        *(longer_texts, another_unit, *EDA),
    )
}
