"""Five wrong documents for each sheet: blind, naive, absurd, everything, opposite.

`blind` is written without looking at the tables; the others count rightly and judge wrongly. `naive` is the habit
of people who see only dtypes; it may be right, and is then left out, as is each document that equals
the sheet's.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from natural.data import Data, plain
from natural.evidence import is_number

Document = dict[str, Any]
Wrong = dict[str, Document]


def imbalance(data: Data, sheet: Document) -> Wrong:
    counts = sheet["class_counts"]
    even = {name: round(sum(counts.values()) / len(counts)) for name in counts}
    order = sorted(counts, key=counts.__getitem__)
    exchanged = dict(zip(order, [counts[name] for name in (*order[1:], order[0])], strict=True))
    acts = sheet["strategies"][0]["name"] != "none"
    names = ["RandomUnderSampler", "SMOTE", "class_weight"]
    return {
        "blind": sheet
        | {"class_counts": even, "imbalance_ratio": 1.0, "severity": "balanced", "strategies": [{"name": "none"}]},
        "naive": sheet | {"strategies": [{"name": "none" if acts else "SMOTE"}]},
        "absurd": sheet
        | {
            "class_counts": exchanged,
            "majority_class": max(exchanged, key=exchanged.__getitem__),
            "minority_class": min(exchanged, key=exchanged.__getitem__),
            "strategies": [{"name": "RandomUnderSampler"}],
        },
        "everything": sheet | {"strategies": [{"name": name} for name in names]},
        "opposite": sheet | {"strategies": [{"name": "none" if acts else "RandomUnderSampler"}]},
    }


def missing(data: Data, sheet: Document) -> Wrong:
    others = [name for name in data.features if name not in data.lacking] or [data.target]

    def all_of(**changes: Any) -> Document:
        return sheet | {"columns": [row | changes for row in sheet["columns"]]}

    opposite = [
        row
        | (
            {"mechanism": "MAR", "depends_on": [others[-1]]}
            if row["mechanism"] == "MCAR"
            else {"mechanism": "MCAR", "depends_on": []}
        )
        | {"imputation": {"name": "drop"}}
        for row in sheet["columns"]
    ]
    median = {"name": "SimpleImputer", "strategy": "mean"}
    texts = {"name": "SimpleImputer", "strategy": "most_frequent"}
    plain = [
        row
        | {
            "mechanism": "MCAR",
            "depends_on": [],
            "imputation": median if is_number(data.train[row["column"]]) else texts,
        }
        for row in sheet["columns"]
    ]
    marked = {"name": "SimpleImputer", "strategy": "most_frequent", "add_indicator": True}
    return {
        "blind": {
            "complete_rows": 0,
            "columns": [row | {"missing": 1, "mechanism": "MNAR", "depends_on": []} for row in sheet["columns"]],
            "together": [],
        },
        "naive": sheet | {"columns": plain, "together": []},
        "absurd": all_of(mechanism="MNAR", depends_on=[], imputation={"name": "SimpleImputer", "strategy": "constant"})
        | {"together": []},
        "everything": all_of(mechanism="MAR", depends_on=[data.target], imputation=marked)
        | {
            "together": [{"columns": data.lacking, "rows": min(row["missing"] for row in sheet["columns"])}]
            if len(data.lacking) > 1
            else []
        },
        "opposite": sheet | {"columns": opposite},
    }


def encoding(data: Data, sheet: Document) -> Wrong:
    def each(kind: str, how: str, names: list[str]) -> Document:
        return {
            "features": constant
            + [
                {
                    "column": name,
                    "type": kind,
                    "cardinality": int(data.train[name].nunique()),
                    "encoding": {"name": how},
                }
                for name in names
            ]
        }

    constant = [row for row in sheet["features"] if row["type"] == "constant"]
    listed = [row["column"] for row in sheet["features"] if row["type"] != "constant"]
    texts = [name for name in data.features if not is_number(data.train[name]) and data.train[name].nunique() > 1]
    numbers = [name for name in data.numbers if name not in listed]
    swap = {
        "nominal": ("numeric", "OrdinalEncoder"),
        "ordinal": ("identifier", "drop"),
        "binary": ("text", "TfidfVectorizer"),
        "identifier": ("nominal", "OrdinalEncoder"),
        "datetime": ("nominal", "OrdinalEncoder"),
        "text": ("ordinal", "OrdinalEncoder"),
        "numeric": ("nominal", "OneHotEncoder"),
        "constant": ("binary", "OneHotEncoder"),
        "cyclic": ("identifier", "drop"),
    }
    opposite = [
        row | {"type": swap[row["type"]][0], "encoding": {"name": swap[row["type"]][1]}}
        for row in sheet["features"]
        if row not in constant
    ]
    return {
        "blind": {
            "features": [
                row | {"type": "nominal", "cardinality": 2, "encoding": {"name": "OrdinalEncoder"}}
                for row in sheet["features"]
            ]
        },
        "naive": each("nominal", "OrdinalEncoder", texts),
        "absurd": each("identifier", "drop", listed),
        "everything": each("nominal", "OneHotEncoder", [*listed, *numbers]),
        "opposite": {"features": constant + opposite},
    }


def eda(data: Data, sheet: Document) -> Wrong:
    def each(**changes: Any) -> Document:
        return {"columns": [row | changes for row in copy.deepcopy(sheet["columns"])]}

    swap = {"none": "values", "monotone": "nonmonotone", "nonmonotone": "monotone", "values": "none"}
    numbers = [row["column"] for row in sheet["columns"] if row["type"] == "number"]
    alike = {name: numbers[place - 1] for place, name in enumerate(numbers)} if len(numbers) > 1 else {}
    opposite = each(sentinel=None, actions=[], center=None)
    for row in opposite["columns"]:
        row["relation"] = swap[row["relation"]]
        row["drift"] = 0.3 if row["drift"] is None else None
        row["like"] = None if row.get("like") else alike.get(row["column"])
    everything = each(relation="monotone", drift=0.2)
    for row in everything["columns"]:
        row["like"] = row.get("like") or alike.get(row["column"])
    return {
        "blind": each(
            distinct=10,
            type="number",
            relation="monotone",
            drift=None,
            sentinel=None,
            like=None,
            actions=[],
            center=None,
        ),
        "naive": each(relation="none", drift=None, sentinel=None, like=None, actions=[], center=None),
        "absurd": each(type="text", relation="none", drift=0.9, sentinel=None, like=None, actions=[], center=None),
        "everything": everything,
        "opposite": opposite,
    }


def cv(data: Data, sheet: Document) -> Wrong:
    keys = [name for name in data.features if 1 < data.train[name].nunique() < len(data.train) / 2]
    wrong_key = next((name for name in keys if set(data.test[name].dropna()) & set(data.train[name].dropna())), None)
    key = {"column": wrong_key or data.features[0]}
    named = {
        "key": key,
        "train_groups": int(data.train[key["column"]].nunique()),
        "shared_groups": len(set(data.train[key["column"]]) & set(data.test[key["column"]])),
    }
    order = next((name for name in data.numbers if not sheet["time"] or name != sheet["time"]["column"]), None)
    time = {"column": order or data.features[0], "test_after_train": True}
    fold = {"name": "GroupKFold", "groups": key}
    forward = {"name": "TimeSeriesSplit", "time_column": time["column"]}
    shuffled = {"name": "KFold", "n_splits": 5}
    plain = sheet | {"groups": None, "time": None, "method": shuffled}
    decided = sheet["groups"] or sheet["time"]
    return {
        "blind": plain
        | {
            "train_rows": 1000,
            "test_rows": 500,
            "duplicate_rows": 100,
            "shared_rows": 100,
            "smallest_class": None if data.regression else 77,
        },
        "naive": plain,
        "absurd": sheet | {"groups": named, "time": None, "method": fold},
        "everything": sheet
        | {
            "groups": named,
            "time": time,
            "method": {"name": "GroupTimeSeriesSplit", "groups": key, "time_column": time["column"]},
        },
        "opposite": sheet
        | (
            {"groups": None, "time": time, "method": forward}
            if not decided or sheet["groups"]
            else {"groups": named, "time": None, "method": fold}
        ),
    }


def scaling(data: Data, sheet: Document) -> Wrong:
    def each(**changes: Any) -> Document:
        return sheet | {"features": [row | changes for row in sheet["features"]]}

    turned = [
        row | {"skewed": not row["skewed"], "outliers": not row["outliers"], "scaler": {"name": "none"}}
        for row in sheet["features"]
    ]
    return {
        "blind": each(mean=0.0, std=1.0, skewed=True, scaler={"name": "StandardScaler"}) | {"spread": 1.0},
        "naive": each(skewed=False, outliers=False, scaler={"name": "StandardScaler"}),
        "absurd": each(skewed=True, outliers=True, scaler={"name": "none"}) | {"not_needed_for": ["svm"]},
        "everything": each(skewed=True, outliers=True, scaler={"name": "QuantileTransformer"}),
        "opposite": sheet | {"features": turned},
    }


def leakage(data: Data, sheet: Document) -> Wrong:
    strong = sheet["feature_strengths"]
    drop, rows = {"name": "drop_columns"}, {"name": "drop_duplicates"}
    named = {name for risk in sheet["risks"] for name in risk["columns"]}
    honest = [row for row in strong if row["column"] not in named]

    def of(rows_: list[Document], kind: str) -> list[Document]:
        return [
            {"kind": kind, "columns": [row["column"]], "strength": row["strength"], "mitigation": drop} for row in rows_
        ]

    share = {"kind": "duplicate_rows", "columns": [], "strength": 0.5, "mitigation": rows}
    none = [row for row in data.features if row not in {r["column"] for r in strong}]
    return {
        "blind": {
            "duplicate_rows": 50,
            "shared_rows": 50,
            "feature_strengths": [{"column": name, "strength": 0.5} for name in data.features[:5]],
            "risks": [],
        },
        "naive": sheet | {"risks": []},
        "absurd": sheet
        | {
            "risks": [
                {"kind": "target_encoding", "columns": [name], "strength": 0.9, "mitigation": drop} for name in none[:3]
            ]
            or of(honest, "future_value")
        },
        "everything": sheet
        | {
            "risks": [
                *of(honest, "noisy_copy"),
                *([share] if sheet["shared_rows"] and all(r["columns"] for r in sheet["risks"]) else []),
            ]
        },
        "opposite": sheet | {"risks": of(honest[:1], "copy") if sheet["risks"] else of(strong[:2], "copy")},
    }


def features(data: Data, sheet: Document) -> Wrong:
    def each(**changes: Any) -> list[Document]:
        return [row | changes for row in sheet["features"]]

    names = [row["column"] for row in sheet["features"]]
    swap = {"alone": "nothing", "together": "nothing", "nothing": "alone"}
    turned = [row | {"tells": swap[row["tells"]], "keep": row["tells"] == "nothing"} for row in sheet["features"]]
    numbers = data.numbers
    every = [[a, b] for place, a in enumerate(names) for b in names[place + 1 :]]
    return {
        "blind": {
            "features": each(strength=0.5, tells="alone", keep=True),
            "pairs": [],
            "copies": [],
            "skewness": 0.0 if data.regression else None,
            "transform": "none",
        },
        "naive": sheet
        | {
            "features": [
                row | {"tells": "alone" if row["strength"] > 0.1 else "nothing", "keep": True}
                for row in sheet["features"]
            ],
            "pairs": [],
            "transform": "none",
        },
        "absurd": sheet
        | {
            "features": [
                *each(tells="nothing", keep=False)[:-1],
                sheet["features"][-1] | {"tells": "nothing", "keep": True},
            ],
            "pairs": [],
            "copies": [[numbers[0], numbers[-1]]] if len(numbers) > 1 else [],
        },
        "everything": sheet
        | {
            "features": each(tells="together", keep=True),
            "pairs": every,
            "copies": [[a, b] for a, b in every if a in numbers and b in numbers],
        },
        "opposite": sheet | {"features": turned, "pairs": [], "copies": []},
    }


def shift(data: Data, sheet: Document) -> Wrong:
    names = [row["column"] for row in sheet["features"]]
    far = {row["column"] for row in sheet["features"] if row["distance"] > 0.1}
    other = next((name for name in data.numbers if name != sheet["changes"]), None)

    def broken(chosen: set[str]) -> list[Document]:
        return [row | {"broken": row["column"] in chosen} for row in sheet["features"]]

    if data.regression:
        same: Any = float(data.y.mean())
        # to the other side than the sheet expects: a guess must not hit the real target
        moved: Any = same - math.copysign(2 * float(data.y.std()), sheet["target"] - same - 1e-9)
    else:
        same = {plain(value): float(share) for value, share in data.y.value_counts(normalize=True).items()}
        shares = sorted(sheet["target"], key=sheet["target"].__getitem__)
        moved = {name: sheet["target"][partner] for name, partner in zip(shares, reversed(shares), strict=True)}
    return {
        "blind": sheet
        | {"features": [row | {"distance": 0.5, "broken": True} for row in sheet["features"]], "target": moved},
        "naive": sheet
        | {
            "features": broken(far),
            "target": same,
            "drop": sorted(far),
            "changes": None,
            "weights": "covariate",
            "recent": 1.0,
        },
        "absurd": sheet
        | {"features": broken(set(names) - far), "changes": other, "target": moved, "weights": "target", "recent": 0.2},
        "everything": sheet
        | {"features": broken(set(names)), "changes": other, "target": moved, "weights": "covariate", "recent": 0.5},
        "opposite": sheet
        | {
            "features": broken(set(names[:1]) if not any(r["broken"] for r in sheet["features"]) else set()),
            "changes": None if sheet["changes"] else other,
            "target": moved,
            "weights": "target",
            "recent": 1.0 if sheet["recent"] < 1 else 0.3,
        },
    }
