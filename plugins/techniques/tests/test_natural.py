"""Natural tables: the sheet that an expert wrote before grading wins, and wrong documents get little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux.models import Task
from mleredux_techniques._kit.declaration import preparation
from natural.answers import GIVEN, KAGGLE, STARTERS, TECHNIQUES, sheet_of
from natural.judge import judge
from natural.known import EXECUTED, KNOWN, OPEN
from natural.sheet import Claim
from natural.tables import TABLES

PLUGIN = Path(__file__).parent / "natural" / "plugin.py"
NAMES = (*TABLES, *STARTERS, *KAGGLE)


def question(technique: str, table: str) -> Any:
    """A parameter of the test, with what is known to fail."""
    name = f"{technique}@{table}"
    marks = [pytest.mark.shared] if table in KAGGLE else []
    if name in KNOWN:
        marks.append(pytest.mark.xfail(reason=KNOWN[name], strict=True, raises=AssertionError))
    elif name in OPEN:
        marks.append(pytest.mark.xfail(reason="not graded since the truth was rewritten", strict=False))
    return pytest.param(technique, table, id=name, marks=marks)


def once(find: Callable[..., Any]) -> Callable[..., Any]:
    """Read each table once for all techniques, rather than once for each."""
    known: dict[tuple[str, Path, bool], Any] = {}

    def read(task: Task, prepared: Path, *, images: bool = True) -> Any:
        key = (task.id, prepared, images)
        if key not in known:
            known.clear()
            known[key] = find(task, prepared, images=images)
        return known[key]

    return read


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "discover", once(preparation.discover))
        yield Catalogue(load=[str(PLUGIN)])
    set_current(None)


@pytest.mark.parametrize("table", NAMES)
def test_a_sheet_answers_every_technique_and_says_why(table: str) -> None:
    """What follows from given predictions by one rule needs no words."""
    sheet = sheet_of(table)
    assert set(sheet) == set(TECHNIQUES)
    for technique, claim in sheet.items():
        if isinstance(claim, Claim) and technique not in GIVEN:
            assert claim.because, technique


@pytest.mark.parametrize(("technique", "table"), [question(name, table) for table in NAMES for name in TECHNIQUES])
def test_the_sheet_wins(
    technique: str, table: str, bench: Any, catalogue: Catalogue, request: pytest.FixtureRequest
) -> None:
    raw = request.getfixturevalue("shared") / "data" / "kaggle" if table in KAGGLE else None
    outcome = judge(technique, table, catalogue, bench.data, raw, f"{technique}@{table}" in EXECUTED)
    assert not outcome.problems, outcome
