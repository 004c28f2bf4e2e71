"""The score of a technique task: facts and efficacy, each component with the figures behind it."""

from __future__ import annotations

import json
import math
from typing import Any

from mleredux.plugin.grader import Grader, GradingInput, Score
from mleredux.plugin.technique import read_document

from mleredux_techniques.results import Efficacy, Facts, as_json
from mleredux_techniques.schemas import DOCUMENTS, Document

FACTS_SHARE = 0.5
FORMULA = (
    "score = facts · (0.5 + 0.5 · efficacy): a recommendation is worth what the findings behind it are worth. Where "
    "these data do not tell a strong choice from a naive one, score = facts"
)


def grade(given: GradingInput) -> Score:
    """Score a document.

    Raises:
        InvalidSubmission: It is no such document; says which field and why.
    """
    technique = technique_of(given.task.id)
    document = read_document(DOCUMENTS[technique], given.submission, given.task.submission.file)
    return score(technique, document, given)


def technique_of(task: str) -> str:
    """The question's name in a task's id."""
    return task.partition("@")[0].partition("+")[0]


def score(technique: str, document: Document, given: GradingInput) -> Score:
    """Facts, then efficacy, then both together."""
    from mleredux_techniques import facts as facts_part
    from mleredux_techniques.dataset import load
    from mleredux_techniques.preparing import TRUTH_FILE
    from mleredux_techniques.recommendation import recommendation

    truth = json.loads((given.private / TRUTH_FILE).read_bytes())
    dataset = load(given.private)
    facts: Facts = facts_part.module(technique).assess(document, truth)
    efficacy = carry_out(technique, dataset, document)
    value = combined(facts.score, efficacy.score)
    details: dict[str, Any] = {
        "technique": technique,
        "formula": FORMULA,
        "facts": as_json(facts),
        "efficacy": as_json(efficacy),
        "recommendation": recommendation(document, dataset),
        "sample": dataset.sample or None,
        "planted": dataset.planted.get("kinds") if dataset.planted else None,
    }
    return Score(value=round(value, 6), details=_plain(details))


def combined(facts: float, efficacy: float | None) -> float:
    """The score of both parts, by `FORMULA`."""
    return facts if efficacy is None else facts * (FACTS_SHARE + (1 - FACTS_SHARE) * efficacy)


def carry_out(technique: str, dataset: Any, document: Document) -> Efficacy:
    """The efficacy part. What can't be carried out earns nothing."""
    from mleredux_techniques.efficacy import measure

    if not dataset.features:
        return Efficacy(None, None, None, None, None)
    try:
        part = measure(technique, document, dataset)
    except Exception as error:  # whatever a document makes the models do is the document's doing
        from mleredux_techniques.results import Figure

        told = f"The recommendation could not be carried out ({type(error).__name__}: {' '.join(str(error).split())})."
        return Efficacy(0.0, 0.0, None, None, None, [Figure("carried out", False, told[:500], 0.0, 1.0)])
    return part


def _plain(value: Any) -> Any:
    """JSON-able throughout: numpy numbers as numbers, NaN as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def grader(technique: str, title: str) -> Grader:
    """The grader of a technique."""
    return Grader(id=technique, title=title, direction="maximize", perfect=1.0, score=grade)
