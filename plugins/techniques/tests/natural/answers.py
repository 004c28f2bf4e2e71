"""The answer of a sheet and its wrong documents, from the public folder of a technique task."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from natural import documents, predictions, wrong
from natural.data import Data
from natural.sheet import Claim, Refused

GIVEN = ("metric", "calibration", "ensembling")
TECHNIQUES = (
    "imbalance",
    "missing",
    "encoding",
    "eda",
    "cv",
    "scaling",
    "leakage",
    *GIVEN,
    "features",
    "shift",
    "debugging",
)

KAGGLE = {
    "spaceship": "spaceship-titanic",
    "pizza": "random-acts-of-pizza",
    "nomad": "nomad2018-predict-transparent-conductors",
}
"""Tables of Kaggle, which lie beside the repository where they may be used (`shared/data/kaggle`)."""
STARTERS = {"wine": "wine", "diabetes": "diabetes"}


def task_of(table: str) -> str:
    """The competition of a table."""
    return (KAGGLE | STARTERS).get(table, f"natural-{table}")


def sheet_of(table: str) -> dict[str, Claim | Refused]:
    """The sheet of a table."""
    found: dict[str, Claim | Refused] = import_module(f"natural.sheets.{table}").SHEET
    return found


def answer(technique: str, claim: Claim, public: Path) -> dict[str, Any]:
    """The document of a sheet."""
    module = predictions if technique in GIVEN else documents
    found: dict[str, Any] = getattr(module, technique)(Data(public), claim.judged)
    return found


def wrong_answers(technique: str, sheet: dict[str, Any], public: Path) -> dict[str, dict[str, Any]]:
    """The wrong documents that differ from a sheet's."""
    data = Data(public)
    if technique in GIVEN:
        found = getattr(predictions, f"{technique}_wrong")(data, sheet)
    else:
        found = getattr(wrong, technique)(data, sheet)
    return {name: document for name, document in found.items() if document != sheet}
