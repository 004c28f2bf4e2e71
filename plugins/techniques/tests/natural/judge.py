"""Grade a sheet and its wrong documents on one technique task."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.grade import grade
from mleredux._core.stages.prepare import prepare
from mleredux.errors import NotApplicable
from mleredux_techniques.kit import TRUTH_FILE
from technique_documents import TECHNIQUES, read

from natural.answers import KAGGLE, answer, sheet_of, task_of, wrong_answers
from natural.sheet import Refused

RIGHT, NOTHING, WRONG = 0.8, 0.4, 0.4


@dataclass
class Outcome:
    """What a sheet and its wrong documents got, and what is not as it should be."""

    sheet: float | None = None
    wrong: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def judge(
    technique: str, table: str, catalogue: Catalogue, store: DataStore, raw: Path | None, executed: bool
) -> Outcome:
    """Prepare a task and grade its documents.

    Args:
        raw: The folder of Kaggle's archives, for its tables.
        executed: Whether the sheet's advice is executed; else its facts are graded. The advice of wrong documents is
            executed where their facts, which their score never exceeds, are not low enough, and the sheet's is.
    """
    if table in KAGGLE:
        assert raw is not None
        name = task_of(table)
        prepare(catalogue.task(name), catalogue, store, source=raw / name / f"{name}.zip")
    claim = sheet_of(table)[technique]
    try:
        task = catalogue.task(f"{technique}@{task_of(table)}")
        prepared = prepare(task, catalogue, store)
    except NotApplicable as error:
        expected = isinstance(claim, Refused) and claim.reason in str(error)
        return Outcome(problems=[] if expected else [str(error)])
    if isinstance(claim, Refused):
        return Outcome(problems=["applies"])
    truth = json.loads((prepared.private / TRUTH_FILE).read_bytes())
    path = prepared.private.parent / f"{technique}_analysis.json"

    def facts(document: dict[str, Any]) -> float:
        return TECHNIQUES[technique].assess(read(technique, document), truth).score

    def whole(document: dict[str, Any]) -> float:
        path.write_text(json.dumps(document), encoding="utf-8")
        return float(grade(task, path, prepared.private, catalogue).score or 0)

    right = answer(technique, claim, prepared.public)
    score: Callable[[dict[str, Any]], float] = whole if executed else facts
    outcome = Outcome(sheet=score(right))
    assert outcome.sheet is not None
    if outcome.sheet < (NOTHING if claim.nothing else RIGHT):
        outcome.problems.append(f"the sheet has {outcome.sheet:.2f}")
    decided = claim.decided(technique)
    for name, document in wrong_answers(technique, right, prepared.public).items():
        reached = facts(document)
        if executed and reached > WRONG:
            reached = whole(document)
        outcome.wrong[name] = reached
        if name in decided and reached > WRONG:
            outcome.problems.append(f"{name} has {reached:.2f}")
        elif reached > outcome.sheet or (name in decided and reached == outcome.sheet):
            outcome.problems.append(f"{name} has {reached:.2f}, the sheet {outcome.sheet:.2f}")
    return outcome
