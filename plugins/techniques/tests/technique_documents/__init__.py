"""Documents for tests and tables: perfect ones, and those of agents that game the score without analyzing the data.

One module per technique, with `play(kind, question)` and `EMPTY`. Gaming agents know only
the description and `question.json`, i.e. the column names. All of them stay below `BOUND`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from mleredux_techniques import mleredux_register_techniques
from mleredux_techniques._kit.planting.composition import view
from mleredux_techniques.kit import TRUTH_FILE, Dataset, Document, Instance, TechniqueSpec, example, load

from technique_documents.bases import base_of

BOUND = 0.4
"""Upper bound of a gaming agent's score, on any instance of any technique."""
KINDS = ("everything", "empty", "example", "contradicting", "textbook")
TECHNIQUES: dict[str, TechniqueSpec] = {
    ref.id: resolve_name(ref.target) for ref in mleredux_register_techniques() if ref.target is not None
}


def perfect(technique: str, private: Path, dataset: Dataset | None = None) -> Any:
    """The document of an agent that knows the private folder of a technique task: the truth, with the strong choice.

    Args:
        dataset: On which recommendations are executed, if it was loaded before.
    """
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    known = view(dataset or load(private), technique)
    solution = TECHNIQUES[technique].solution
    assert solution is not None
    return read(technique, solution(Instance(known, truth, base_of(known))))


def play(kind: str, technique: str, public: Path) -> dict[str, Any]:
    """The document of a gaming agent, as JSON values; the reader may reject it, which scores nothing.

    Args:
        kind: `everything` lists all there could be, `empty` as little as the form allows, `example` copies the
            description's, `contradicting` claims one thing and recommends another, `textbook` always says the same.
        public: The task's public files.
    """
    if kind == "example":
        copied: dict[str, Any] = json.loads(example(TECHNIQUES[technique]))
        return copied
    question = json.loads((public / "question.json").read_bytes())
    played: dict[str, Any] = import_module(f"{__name__}.{technique}").play(kind, question)
    return played


def empty(technique: str) -> dict[str, Any]:
    """As little as the form allows, of a binary target `returned`."""
    found: dict[str, Any] = import_module(f"{__name__}.{technique}").EMPTY
    return found


def read(technique: str, content: dict[str, Any]) -> Document:
    """The document, or a ValidationError."""
    return TECHNIQUES[technique].document.model_validate_json(json.dumps(content))
