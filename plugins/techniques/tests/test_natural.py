"""Natural tables: the sheet that an expert wrote before grading wins, and wrong documents get little."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.grade import grade
from mleredux._core.stages.prepare import prepare
from mleredux.errors import NotApplicable
from mleredux_techniques.kit import TRUTH_FILE
from natural.answers import KAGGLE, STARTERS, answer, sheet_of, task_of, wrong_answers
from natural.known import EXECUTED, KNOWN
from natural.sheet import DECIDED, Claim, Refused
from natural.tables import TABLES
from technique_documents import TECHNIQUES, read

RIGHT, NOTHING, WRONG = 0.8, 0.4, 0.4
PLUGIN = Path(__file__).parent / "natural" / "plugin.py"
QUESTIONS = [
    pytest.param(
        technique,
        table,
        id=f"{technique}@{table}",
        marks=[
            *([pytest.mark.shared] if table in KAGGLE else []),
            *([pytest.mark.slow] if f"{technique}@{table}" in EXECUTED else []),
            *([pytest.mark.xfail(reason=KNOWN[name], strict=True)] if (name := f"{technique}@{table}") in KNOWN else []),
        ],
    )
    for table in (*TABLES, *STARTERS, *KAGGLE)
    for technique in sheet_of(table)
]


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    yield Catalogue(load=[str(PLUGIN)])
    set_current(None)


def test_sheets_answer_every_technique() -> None:
    for table in (*TABLES, *STARTERS, *KAGGLE):
        assert set(sheet_of(table)) == set(TECHNIQUES), table


def test_sheets_say_why() -> None:
    """What is computed from given predictions by one rule needs no words."""
    for table in (*TABLES, *STARTERS, *KAGGLE):
        for technique, claim in sheet_of(table).items():
            if isinstance(claim, Claim) and technique not in ("metric", "calibration", "ensembling"):
                assert claim.because, (table, technique)


@pytest.mark.parametrize(("technique", "table"), QUESTIONS)
def test_the_sheet_wins(
    technique: str, table: str, bench: Any, catalogue: Catalogue, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if table in KAGGLE:
        name = task_of(table)
        raw = request.getfixturevalue("shared") / "data" / "kaggle" / name / f"{name}.zip"
        prepare(catalogue.task(name), catalogue, bench.data, source=raw)
    task, claim = catalogue.task(f"{technique}@{task_of(table)}"), sheet_of(table)[technique]
    if isinstance(claim, Refused):
        with pytest.raises(NotApplicable, match=claim.reason):
            prepare(task, catalogue, bench.data)
        return
    prepared = prepare(task, catalogue, bench.data)
    truth = json.loads((prepared.private / TRUTH_FILE).read_bytes())

    def facts(document: dict[str, Any]) -> float:
        return TECHNIQUES[technique].assess(read(technique, document), truth).score

    def whole(document: dict[str, Any]) -> float:
        path = tmp_path / f"{technique}_analysis.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return float(grade(task, path, prepared.private, catalogue).score or 0)

    right = answer(technique, claim, prepared.public)
    executed = f"{technique}@{table}" in EXECUTED
    reached = whole(right) if executed else facts(right)
    assert reached >= (NOTHING if claim.nothing else RIGHT)
    decided = claim.decided(technique)
    for name, document in wrong_answers(technique, right, prepared.public).items():
        score = facts(document)  # never exceeded by the score
        if executed and score > WRONG:
            score = whole(document)
        if name in decided:
            assert score <= WRONG and score < reached, (name, score, reached)
        else:
            assert score <= reached, (name, score, reached)
