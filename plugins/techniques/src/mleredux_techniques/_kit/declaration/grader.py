"""The score of a technique task: facts and efficacy, with details for each component."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError, one_line
from mleredux.plugin.grader import Grader, GradingInput, Score
from mleredux.plugin.technique import read_document
from pydantic_core import from_json, to_json

from mleredux_techniques._kit.data.dataset import FILES, Dataset, Instance, load
from mleredux_techniques._kit.data.threads import one_thread
from mleredux_techniques._kit.declaration.preparation import TRUTH_FILE
from mleredux_techniques._kit.judging.marks import Efficacy, Figure
from mleredux_techniques._kit.planting.composition import view
from mleredux_techniques._kit.vocabulary.document import Document

if TYPE_CHECKING:
    from mleredux.plugin.task import Task

    from mleredux_techniques._kit.declaration.spec import TechniqueSpec

MOST_LINES = 200
"""Maximum length of a recommendation."""
FACTS_SHARE = 0.3
COUNTS_SHARE = 0.5
BOTH, FACTS_ONLY, COUNTS_ONLY = "facts × efficacy", "facts", "counts"
"""Names of scores, by whether the data distinguishes good from bad recommendations, or at least good from bad
judgments.
"""
FORMULA = {
    BOTH: "score = facts · (0.3 + 0.7 · efficacy): a recommendation is worth as much as the findings behind it",
    FACTS_ONLY: "score = facts: this data does not distinguish a good recommendation from a bad one",
    COUNTS_ONLY: "score = 0.5 · facts: only counts can be judged on this data, and no recommendation",
}


def grader(technique: TechniqueSpec) -> Grader:
    """Return the grader of a technique."""
    score = partial(grade, technique)
    return Grader(id=technique.id, title=technique.title, direction="maximize", perfect=1.0, score=score)


def solution(technique: TechniqueSpec, task: Task, private: Path) -> bytes:
    """Return the document of the technique's `solution`, as JSON."""
    assert technique.solution is not None
    _, instance = opened(technique, GradingInput(private / TRUTH_FILE, private, task, {}))
    with one_thread():
        return to_json(technique.solution(instance), indent=1, fallback=lambda value: value.item())


def grade(technique: TechniqueSpec, inputs: GradingInput) -> Score:
    """Score a document.

    Raises:
        InvalidSubmission: The document is invalid; the message names the field and the reason.
    """
    document = read_document(technique.document, inputs.submission, inputs.task.submission.file)
    return score(technique, document, inputs)


def score(technique: TechniqueSpec, document: Document, inputs: GradingInput) -> Score:
    """Grade the facts, then the efficacy, and combine them."""
    from itertools import islice

    dataset, instance = opened(technique, inputs)
    facts = technique.assess(document, instance.truth)
    efficacy = carry_out(technique, document, instance)
    if dataset.planted and technique.private_parts:  # planted facts are known without the test labels
        efficacy = replace(efficacy, training=efficacy.score)
    details: dict[str, Any] = {
        "technique": technique.id,
        "score": (name := BOTH if efficacy.score is not None else FACTS_ONLY if facts.decided else COUNTS_ONLY),
        "formula": FORMULA[name],
        "facts": asdict(facts),
        "efficacy": asdict(efficacy),
        "recommendation": list(islice(technique.recommend(document, dataset), MOST_LINES)),
        "private": [] if dataset.planted else list(technique.private_parts),
        "sample": dataset.sample or None,
        "planted": dataset.planted.get("kinds") if dataset.planted else None,
    }
    # plain JSON: numbers of numpy become numbers, NaN becomes null
    plain = from_json(to_json(details, inf_nan_mode="null", fallback=lambda value: value.item()))
    return Score(value=round(combined(facts.score, efficacy.score, decided=facts.decided), 6), details=plain)


class _Opened(threading.local):
    of: tuple[str, Task, bytes] | None = None
    content: tuple[Dataset, Instance]


_opened = _Opened()


def opened(technique: TechniqueSpec, inputs: GradingInput) -> tuple[Dataset, Instance]:
    """Return the data of a task, and the instance that recommendations are executed on.

    A thread that grades several documents of one task gets the same objects, so that cached results are reused.
    """
    base = inputs.task.base or inputs.task
    content = hashlib.sha256(b"".join((inputs.private / name).read_bytes() for name in (TRUTH_FILE, *FILES))).digest()
    if _opened.of != (of := (technique.id, base, content)):
        dataset, truth = load(inputs.private), json.loads((inputs.private / TRUTH_FILE).read_bytes())
        _opened.of, _opened.content = of, (dataset, Instance(view(dataset, technique.id), truth, base))
    return _opened.content


def combined(facts: float, efficacy: float | None, *, decided: bool = True) -> float:
    """Combine facts and efficacy with `FORMULA`.

    Args:
        decided: Whether the facts include judgments, not only counts.
    """
    if efficacy is None:
        return facts if decided else COUNTS_SHARE * facts
    return facts * (FACTS_SHARE + (1 - FACTS_SHARE) * efficacy)


def carry_out(technique: TechniqueSpec, document: Document, instance: Instance) -> Efficacy:
    """Grade the efficacy. A recommendation that can't be executed scores 0."""
    if not instance.dataset.features:
        return Efficacy()
    try:
        with one_thread():  # floating-point sums depend on their order
            return technique.measure(document, instance)
    except SandboxError:  # a problem with this machine, not with the document
        raise
    except Exception as error:  # errors that a document causes in the models count against the document
        reason = f"The recommendation could not be executed ({one_line(error)})."
        return Efficacy(0.0, 0.0, parts=[Figure("carried out", False, reason[:500], 0.0, 1.0)])
