"""What a sheet says of a table and a technique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DECIDED = {
    "imbalance": {"blind", "absurd"},
    "missing": {"blind", "naive", "absurd", "everything", "opposite"},
    "encoding": {"blind", "absurd", "opposite"},
    "eda": {"blind", "naive", "absurd", "everything", "opposite"},
    "cv": {"blind", "naive", "absurd", "everything", "opposite"},
    "scaling": {"blind", "naive", "absurd", "everything", "opposite"},
    "leakage": {"blind", "naive", "absurd", "everything", "opposite"},
    "metric": {"blind", "absurd", "opposite"},
    "calibration": {"blind", "absurd", "opposite"},
    "ensembling": {"blind", "absurd", "everything", "opposite"},
    "features": {"blind", "absurd", "everything", "opposite"},
    "shift": {"blind", "absurd", "everything", "opposite"},
}
"""Wrong documents that contradict a decided question on most tables; a sheet names its exceptions."""


@dataclass(frozen=True)
class Refused:
    """The technique does not apply, for a reason that contains these words."""

    reason: str


@dataclass(frozen=True)
class Claim:
    """The judgements of a sheet, from which `documents` makes the answer.

    Attributes:
        judged: As the technique's function in `documents` understands it.
        because: The evidence, with figures (`evidence` has the tests).
        undecided: Wrong documents that this data can't refute: they are to stay below the sheet only.
        refuted: Further wrong documents that contradict a decided question.
        nothing: Whether there is nothing to find, so that counting alone is worth little.
    """

    judged: Any = None
    because: str = ""
    undecided: frozenset[str] = frozenset()
    refuted: frozenset[str] = frozenset()
    nothing: bool = False

    def decided(self, technique: str) -> set[str]:
        """The wrong documents that must get little."""
        return (DECIDED[technique] | self.refuted) - self.undecided


def claim(
    judged: Any = None, because: str = "", *, undecided: str = "", refuted: str = "", nothing: bool = False
) -> Claim:
    """A claim; names of documents are words of a text."""
    return Claim(judged, because, frozenset(undecided.split()), frozenset(refuted.split()), nothing)


NUMBERS = Refused("regression metric")
NO_GAPS = Refused("has missing values")
ALL_NUMBERS = Refused("all features of its tables are numbers")
NO_SCRIPT = Refused("it has no script")
ONE_HOT, TARGET, DROP, KEEP = "OneHotEncoder", "TargetEncoder", "drop", "none"


def how(name: str, **options: Any) -> dict[str, Any]:
    """An encoding, an imputation, or a method."""
    return {"name": name, **options}


def ordered(*values: str) -> tuple[str, dict[str, Any]]:
    """An ordinal column with its order."""
    return "ordinal", how("OrdinalEncoder", categories=list(values))


MEDIAN = how("SimpleImputer", strategy="median")
MARKED = how("SimpleImputer", strategy="median", add_indicator=True)
