"""The description of a technique task: question, data, the document's format with an example, and scoring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.errors import TaskBroken, file_errors

from mleredux_techniques._kit.data.discovery import has_table
from mleredux_techniques._kit.judging.reference import NAMES

if TYPE_CHECKING:
    from mleredux_techniques._kit.declaration.spec import TechniqueSpec, TechniqueTask

TEXTS = Path(__file__).with_name("texts")
_MEASURE = (
    "The measure is the competition's own metric, {metric} ({better} is better), on held-out training rows, for "
    f"the kind of predictions that it requires, made by {NAMES}."
)


def compose(task: TechniqueTask, *, obfuscated: bool = False) -> str:
    """Return the complete text for the agent.

    Raises:
        TaskBroken: A description is missing.
    """
    technique = task.technique
    text, efficacy = _read(task.description).split("\n## Efficacy\n")
    question, _, tolerances = text.partition("\n## Facts\n")
    base = task.base
    if base is None:
        raise TaskBroken(f"Task {task.id} has no base.")
    better = "higher" if base.direction == "maximize" else "lower"
    planted, described = "planted" in task.tags, technique.images and not has_table(base.base or base)
    parts = {"planted": planted, "pictures": planted and described, "images": described}
    data = "".join(_read(TEXTS / f"{name}.md") for name, holds in parts.items() if holds)
    data = data.replace("{files}", "the tables and images" if described else "the two tables")
    efficacy = efficacy.replace("{measure}", _MEASURE.format(metric=base.metric.id, better=better))
    return _read(TEXTS / "task.md").format(
        question=question.rstrip() + "\n",
        planted=data,
        file=task.submission.file,
        schema=json.dumps(technique.document.model_json_schema(), indent=1).replace("\\n", " "),
        example=example(technique).strip(),
        tolerances=tolerances.strip() or technique.tolerances,
        efficacy=" ".join(efficacy.split()),
        text=base.describe(obfuscated=obfuscated),
    )


def example(technique: TechniqueSpec) -> str:
    """Return the example document, which describes data that no task uses."""
    return _read(technique.folder / "example.json")


def _read(path: Path) -> str:
    with file_errors(TaskBroken, f"{path} can't be read"):
        return path.read_text(encoding="utf-8")
