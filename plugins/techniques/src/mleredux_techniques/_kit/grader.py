"""The score of a technique task: facts and efficacy, each component with the figures behind it."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from mleredux.plugin.grader import Grader, GradingInput, Score
from mleredux.plugin.technique import read_document

from mleredux_techniques._kit.document import Document
from mleredux_techniques._kit.preparation import TRUTH_FILE
from mleredux_techniques._kit.results import Efficacy, Figure, as_json

if TYPE_CHECKING:
    from mleredux_techniques._kit.spec import Instance, TechniqueSpec

MOST_LINES = 200
"""Of a recommendation."""
FACTS_SHARE = 0.5
FORMULA = (
    "score = facts · (0.5 + 0.5 · efficacy): a recommendation is worth what the findings behind it are worth. Where "
    "these data do not tell a strong choice from a naive one, score = facts"
)


def grader(technique: TechniqueSpec) -> Grader:
    """The grader of a technique."""
    score = partial(grade, technique)
    return Grader(id=technique.id, title=technique.title, direction="maximize", perfect=1.0, score=score)


def grade(technique: TechniqueSpec, given: GradingInput) -> Score:
    """Score a document.

    Raises:
        InvalidSubmission: It is not such a document; says which field and why.
    """
    document = read_document(technique.document, given.submission, given.task.submission.file)
    return score(technique, document, given)


def score(technique: TechniqueSpec, document: Document, given: GradingInput) -> Score:
    """Facts, then efficacy, then both together."""
    from itertools import islice

    from mleredux_techniques._kit.dataset import load
    from mleredux_techniques._kit.spec import Instance

    truth = json.loads((given.private / TRUTH_FILE).read_bytes())
    dataset = load(given.private)
    facts = technique.assess(document, truth)
    efficacy = carry_out(technique, document, Instance(dataset, truth, given.task.base or given.task))
    details: dict[str, Any] = {
        "technique": technique.id,
        "formula": FORMULA,
        "facts": as_json(facts),
        "efficacy": as_json(efficacy),
        "recommendation": list(islice(technique.recommend(document, dataset), MOST_LINES)),
        "sample": dataset.sample or None,
        "planted": dataset.planted.get("kinds") if dataset.planted else None,
    }
    return Score(value=round(combined(facts.score, efficacy.score), 6), details=_plain(details))


def combined(facts: float, efficacy: float | None) -> float:
    """The score of both parts, by `FORMULA`."""
    return facts if efficacy is None else facts * (FACTS_SHARE + (1 - FACTS_SHARE) * efficacy)


def carry_out(technique: TechniqueSpec, document: Document, instance: Instance) -> Efficacy:
    """The efficacy part. What can't be carried out earns nothing."""
    from threadpoolctl import threadpool_limits

    if not instance.dataset.features:
        return Efficacy(None, None, None, None, None)
    try:
        with threadpool_limits(1):  # sums in another order are other sums
            return technique.measure(document, instance)
    except Exception as error:  # whatever a document makes the models do is the document's doing
        told = f"The recommendation could not be carried out ({type(error).__name__}: {' '.join(str(error).split())})."
        return Efficacy(0.0, 0.0, None, None, None, [Figure("carried out", False, told[:500], 0.0, 1.0)])


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
