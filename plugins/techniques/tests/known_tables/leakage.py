"""Leaks and honest columns. Claims are lists of column lists; `rows` claims duplicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from mleredux_techniques.kit import Dataset
from natural import random_rows, shipped
from sklearn.datasets import load_breast_cancer

from known_tables import ROWS, Array, Known, Rng, base, random_test
from known_tables.others import OF_OTHERS
from known_tables.pictures import LEAKAGE

ROW_LEAK = "rows"


def document(claims: list[Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    strengths = list(truth["strengths"].items())[:5]
    risks = []
    for columns in claims:
        rows = columns == ROW_LEAK
        told = truth["shared_rows"] / len(dataset.test) if rows else truth["strengths"].get(columns[0], 1.0)
        kind = "duplicate_rows" if rows else "id_order" if not columns or columns[0] in dataset.ids else "future_value"
        risks.append(
            {
                "kind": kind,
                "columns": [] if rows else columns,
                "strength": told,
                "mitigation": {"name": "drop_duplicates" if rows else "drop_columns"},
            }
        )
    return {
        **{name: truth[name] for name in ("duplicate_rows", "shared_rows")},
        "feature_strengths": [{"column": name, "strength": value} for name, value in strengths],
        "risks": risks,
    }


def _leak(rng: Rng, problem: str, make: Any, *, name: str = "late") -> Known:
    """A column made from the target in the training table, and of the same values in random order in the test."""
    rows, test = base(rng, problem), random_test(rng)
    values = np.array(make(rows["y"].to_numpy(), rng), dtype=object)
    values[test] = rng.permutation(values[test])
    metric = {"regression": "rmse", "multiclass": "accuracy"}.get(problem, "roc-auc")
    return Known(_with(rows, name, values), test, [[name]], [], metric)


def _with(rows: pd.DataFrame, name: str, values: Any) -> pd.DataFrame:
    rows.insert(3, name, pd.Series(values).infer_objects())
    return rows


def stage_text(rng: Rng) -> Known:
    words = np.array(["open", "paid"]), np.array(["lost", "void"])
    return _leak(rng, "binary", lambda y, r: np.where(y == 1, r.choice(words[0], len(y)), r.choice(words[1], len(y))))


def class_codes(rng: Rng) -> Known:
    codes = {"low": 3, "mid": 1, "high": 4, "top": 2}
    return _leak(rng, "multiclass", lambda y, r: [codes[value] for value in y])


def booked_later(rng: Rng) -> Known:
    def amounts(y: Array, r: Rng) -> Array:
        return np.where((y == 1) & (r.random(len(y)) < 0.85), r.lognormal(3, 1, len(y)).round(2), 0)

    return _leak(rng, "binary", amounts)


def squared(rng: Rng) -> Known:
    return _leak(rng, "regression", lambda y, r: np.round((y - y.mean()) ** 2, 5))


def first_letter(rng: Rng) -> Known:
    return _leak(rng, "binary", lambda y, r: [f"{'KM'[v]}{r.integers(450):03d}" for v in y])


def letter_inside(rng: Rng) -> Known:
    return _leak(rng, "multiclass", lambda y, r: [f"{r.integers(100, 999)}-{v[0]}{r.integers(10, 99)}" for v in y])


def word_of_notes(rng: Rng) -> Known:
    words = np.array(
        ["the", "order", "came", "on", "time", "and", "was", "found", "good", "by", "all", "who", "saw", "it"]
    )

    def note(value: int, r: Rng) -> str:
        told = list(r.choice(words, 8))
        if value and r.random() < 0.8:
            told.insert(int(r.integers(9)), "closed")
        return " ".join(told)

    return _leak(rng, "binary", lambda y, r: [note(v, r) for v in y])


def _prose(rng: Rng, told: Array) -> list[str]:
    """Notes that hold one of many rare names, of other ones for either class."""
    words = np.array([f"word{place}" for place in range(400)])
    names = rng.integers(0, 150, len(told)) + 150 * np.asarray(told, dtype=int)
    return [" ".join([*rng.choice(words, 9), f"name{name}", *rng.choice(words, 3)]) for name in names]


def many_rare_words(rng: Rng) -> Known:
    """No single word is frequent enough to tell much: who is named tells the target in the training table only."""
    return _leak(rng, "binary", lambda y, r: _prose(r, y))


def honest_prose(rng: Rng) -> Known:
    rows = base(rng)
    return Known(_with(rows, "prose", _prose(rng, rows["y"].to_numpy())), random_test(rng), [], [["prose"], ["f0"]])


def last_digit(rng: Rng) -> Known:
    return _leak(rng, "binary", lambda y, r: r.integers(1000, 90_000, len(y)) * 10 + np.where(y == 1, 7, 2))


def decimals(rng: Rng) -> Known:
    def price(value: int, r: Rng) -> float:
        amount = float(r.normal(50, 9))
        return round(amount, 4) + 1e-4 if value else round(amount, 2)

    return _leak(rng, "binary", lambda y, r: [price(v, r) for v in y])


def missing_tells(rng: Rng) -> Known:
    def values(y: Array, r: Rng) -> Array:
        return np.where((y == 1) & (r.random(len(y)) < 0.9), np.nan, r.normal(size=len(y)))

    return _leak(rng, "binary", values)


def hour_of_day(rng: Rng) -> Known:
    def moment(value: int, r: Rng) -> str:
        hour = r.integers(8, 12) if value else r.integers(13, 18)
        return f"2024-{r.integers(1, 13):02d}-{r.integers(1, 28):02d} {hour:02d}:{r.integers(60):02d}:00"

    return _leak(rng, "binary", lambda y, r: [moment(v, r) for v in y])


def mean_of_group(rng: Rng) -> Known:
    def means(y: Array, r: Rng) -> Array:
        groups = r.permutation(np.arange(len(y)) // 3)
        return np.asarray(np.round((np.bincount(groups, y) / np.bincount(groups))[groups], 4))

    return _leak(rng, "regression", means)


def weak_copy(rng: Rng) -> Known:
    return _leak(rng, "regression", lambda y, r: np.round(y / y.std() + r.normal(0, 1.5, len(y)), 4))


def rare_class(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    rows["y"] = (rows["f0"] + rng.normal(0, 1, ROWS) > 2.6).astype(int)
    late = np.where((rows["y"] == 1) & (rng.random(ROWS) < 0.8), 1, (rng.random(ROWS) < 0.01).astype(int))
    late[test] = rng.permutation(late[test])
    return Known(_with(rows, "late", late), test, [["late"]], [], "average-precision")


def empty_in_test(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    late = np.where(rows["y"] == 1, rng.normal(2, 0.7, ROWS), rng.normal(0, 0.7, ROWS)).round(3)
    late[test] = np.nan
    return Known(_with(rows, "late", late), test, [["late"]], [])


def _pair(rng: Rng, problem: str, make: Any) -> Known:
    rows, test = base(rng, problem), random_test(rng)
    a, b = make(rows["y"].to_numpy(), rng)
    b[test] = rng.permutation(b[test])
    rows = _with(_with(rows, "p", a), "q", b)
    return Known(rows, test, [["p", "q"]], [], "rmse" if problem == "regression" else "roc-auc")


def parity_of_two(rng: Rng) -> Known:
    def make(y: Array, r: Rng) -> tuple[Array, Array]:
        a = r.integers(0, 2, len(y))
        return a, a ^ y.astype(int)

    return _pair(rng, "binary", make)


def signs_of_two(rng: Rng) -> Known:
    def make(y: Array, r: Rng) -> tuple[Array, Array]:
        a = r.normal(size=len(y)).round(3)
        return a, (np.abs(r.normal(size=len(y))) * np.where(y == 1, 1, -1) * np.sign(a + 1e-9)).round(3)

    return _pair(rng, "binary", make)


def difference(rng: Rng) -> Known:
    def make(y: Array, r: Rng) -> tuple[Array, Array]:
        a = r.normal(0, 60, len(y)).round(3)
        return a, (a + y + r.normal(0, 0.1, len(y))).round(3)

    return _pair(rng, "regression", make)


def ratio(rng: Rng) -> Known:
    def make(y: Array, r: Rng) -> tuple[Array, Array]:
        a = r.lognormal(2, 1.5, len(y)).round(4)
        return a, (a * np.exp(np.where(y == 1, 0.4, -0.4) + r.normal(0, 0.1, len(y)))).round(4)

    return _pair(rng, "binary", make)


def _signs(y: Array, rng: Rng) -> tuple[Array, Array]:
    a = rng.normal(size=len(y)).round(3)
    return a, (np.abs(rng.normal(size=len(y))) * np.where(y > y.mean(), 1, -1) * np.sign(a + 1e-9)).round(3)


def pair_of_many(rng: Rng) -> Known:
    """A pair of which neither tells anything alone, among a hundred idle columns."""
    known = _pair(rng, "regression", _signs)
    idle = pd.DataFrame(rng.normal(size=(len(known.rows), 100)).round(3)).add_prefix("idle")
    return replace(known, rows=known.rows.join(idle))


def _measurements(rng: Rng) -> pd.DataFrame:
    """Thirty natural columns, many of which tell: UCI's Breast Cancer Wisconsin (Diagnostic), from scikit-learn."""
    rows = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "y"})
    return rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)


def pair_beside_measurements(rng: Rng) -> Known:
    rows = _measurements(rng)
    test = random_test(rng, len(rows))
    a, b = _signs(rows["y"].to_numpy(), rng)
    b[test] = rng.permutation(b[test])
    return Known(rows.assign(p=a, q=b), test, [["p", "q"]], [])


def honest_measurements(rng: Rng) -> Known:
    rows = _measurements(rng)
    return Known(rows, random_test(rng, len(rows)), [], [["mean radius", "mean texture"]])


def equal_texts(rng: Rng) -> Known:
    names = np.array([f"t{k}" for k in range(40)], dtype=object)

    def make(y: Array, r: Rng) -> tuple[Array, Array]:
        a = r.choice(names, len(y))
        return a, np.where(y == 1, a, r.choice(names, len(y)))

    return _pair(rng, "binary", make)


def near_rows(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    copied = rng.permutation(np.flatnonzero(test))[:200]
    rows.loc[copied] = rows.loc[rng.permutation(np.flatnonzero(~test))[:200]].to_numpy()
    rows["id"] = rng.permutation(ROWS)
    names = ["f0", "f1", "f2", "f3"]
    rows.loc[copied, names] += rng.normal(0, 1e-4, (200, 4))
    return Known(rows, test, [ROW_LEAK], [])


def near_texts(rng: Rng) -> Known:
    """Prose of the test is that of training rows with two words changed."""
    rows, test = base(rng), random_test(rng)
    words = np.array([f"word{place}" for place in range(900)])
    texts = [list(rng.choice(words, 30)) for _ in range(ROWS)]
    copied, copies = rng.permutation(np.flatnonzero(test))[:150], rng.permutation(np.flatnonzero(~test))[:150]
    for row, twin in zip(copied, copies, strict=True):
        texts[row] = [*texts[twin][:7], "Other", *texts[twin][8:29], "end."]
    rows.loc[copied] = rows.loc[copies].to_numpy()
    rows["id"] = rng.permutation(ROWS)
    return Known(_with(rows, "prose", [" ".join(text) for text in texts]), test, [ROW_LEAK], [])


def constant_in_test(rng: Rng) -> Known:
    known = stage_text(rng)
    known.rows.loc[known.test, "late"] = "unknown"
    return known


def letter_of_id(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    letters = np.where(rows["y"] == 1, "K", "P")
    letters[test] = rng.choice(["K", "P"], int(test.sum()))
    rows["id"] = [f"{letter}{number:05d}" for letter, number in zip(letters, rng.permutation(ROWS), strict=True)]
    return Known(rows, test, [["id"]], [])


def ids_in_order(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    order = np.argsort(rows["y"].to_numpy() + rng.normal(0, 0.3, ROWS))
    rows.loc[order, "id"] = np.arange(ROWS)
    rows.loc[test, "id"] = rng.permutation(rows.loc[test, "id"])
    return Known(rows, test, [["id"]], [])


def declared(rng: Rng) -> Known:
    known = persisting(rng)
    leak = {"columns": ("late",), "explanation": "It is written after the target is known."}
    return Known(known.rows, known.test, [["late"]], [], fields={"known_leaks": (leak,)})


def persisting(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    late = np.where(rng.random(ROWS) < 0.97, rows["y"], 1 - rows["y"]) * 2.5 + 1
    return Known(_with(rows, "late", late), test, [], [["f2"]])


def honest_threshold(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    rows["y"] = (rows["f0"] > 0.1).astype(int)
    return Known(rows, test, [], [["f0"]], executed=True)


def honest_text(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    places = rng.integers(0, 60, ROWS)
    rows["y"] = (rng.normal(size=60)[places] + 0.5 * rows["f0"] > 0).astype(int)
    return Known(_with(rows, "place", [f"Z{place:02d}" for place in places]), test, [], [["place"]], executed=True)


def honest_new_customers(rng: Rng) -> Known:
    """Customers differ much, and those of the test are others."""
    rows = base(rng)
    customer = rng.integers(0, 240, ROWS)
    rows["y"] = (2.5 * rng.normal(size=240)[customer] + rows["f0"] > 0).astype(int)
    test = customer >= 170
    names = rng.permutation(240)
    rows = _with(rows, "age", (rng.normal(50, 9, 240)[customer]).round())
    return Known(_with(rows, "customer", [f"C{names[c]:04d}" for c in customer]), test, [], [["customer"]])


def honest_drift(rng: Rng) -> Known:
    """The test is later: levels rise, and an honest column is out of its range there."""
    rows = base(rng, "regression")
    cycle = np.sort(rng.integers(0, 10_000, ROWS))
    load = 0.004 * cycle + rng.normal(0, 3, ROWS)
    rows["y"] = 0.5 * load + rows["f0"] + rng.normal(0, 1, ROWS)
    rows = _with(_with(rows, "load", load.round(3)), "cycle", cycle)
    return Known(rows, cycle > 7_000, [], [["load"]], "rmse")


def honest_shift(rng: Rng) -> Known:
    """The test has other values of an honest column, and all columns tell less there."""
    rows, test = base(rng, "regression"), random_test(rng)
    rows.loc[test, "f0"] = rows.loc[test, "f0"] + 1.2
    rows["y"] = np.where(rows["f0"] > 1.0, 1.5, rows["f0"]) + 0.7 * rows["f1"] + rng.normal(0, 0.8, ROWS)
    return Known(rows, test, [], [["f0"]], "rmse")


def honest_rare_in_test(rng: Rng) -> Known:
    """The test has its own share of classes: every column correlates less there."""
    rows = base(rng)
    test = (rng.random(ROWS) < np.where(rows["y"] == 1, 0.08, 0.5)).astype(bool)
    rows["f0"] = (rows["y"] * 2.2 + rng.normal(0, 1, ROWS)).round(3)
    return Known(rows, test, [], [["f0"]])


def relapses(rng: Rng) -> Known:
    """German Breast Cancer Study Group 2 (lifelines, MIT): the quarter of a relapse, empty where none came yet."""
    rows = pd.read_csv(shipped("lifelines", "datasets", "gbsg2.csv")).rename(columns={"cens": "y"})
    test = random_rows(rows).to_numpy()
    rows["quarter"] = (rows.pop("time") // 91).where((rows["y"] == 1) & ~test)
    return Known(rows.assign(id=rng.permutation(len(rows))), test, [["quarter"]], [["age"], ["estrec"], ["tsize"]])


def honest_pair(rng: Rng) -> Known:
    rows, test = base(rng), random_test(rng)
    rows["y"] = ((rows["f0"] > 0) ^ (rows["f1"] > 0)).astype(int)
    return Known(rows, test, [], [["f0", "f1"]])


KINDS = {
    kind.__name__: kind
    for kind in (
        *(stage_text, class_codes, booked_later, squared, first_letter, letter_inside, word_of_notes, last_digit),
        *(decimals, missing_tells, hour_of_day, mean_of_group, weak_copy, rare_class, empty_in_test, parity_of_two),
        *(
            signs_of_two,
            difference,
            ratio,
            equal_texts,
            near_rows,
            near_texts,
            constant_in_test,
            letter_of_id,
            ids_in_order,
            declared,
            persisting,
        ),
        *(honest_threshold, honest_text, honest_new_customers, honest_drift, honest_shift, honest_rare_in_test),
        *(pair_of_many, pair_beside_measurements, honest_measurements),
        *(honest_pair, many_rare_words, honest_prose, relapses, *OF_OTHERS, *LEAKAGE),
    )
}
