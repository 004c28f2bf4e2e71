"""A technique as one object, and the tasks that it makes of others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable, NotFound
from mleredux.plugin.task import Metric, Submission, Task
from mleredux.plugin.technique import Technique

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.description import compose
from mleredux_techniques._kit.document import Document
from mleredux_techniques._kit.grader import grader
from mleredux_techniques._kit.preparation import prepare
from mleredux_techniques._kit.results import Efficacy, Facts

WITH_TABLES = ("Tabular", "Text Classification", "Text (Other)", "Forecasting", "Training LLMs", "Signal Processing")
"""Categories of tasks with a table of features of all kinds."""
_WITHOUT_TABLES = ("Image", "Audio", "Video", "Object Detection")
_PLANTED = re.compile(r"planted-(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Instance:
    """One technique task's data and its truth, as a recommendation is carried out on them.

    Attributes:
        dataset: The data, at most 10,000 training rows and 5,000 test rows with their labels.
        truth: What `TechniqueSpec.truth` gave, of all rows.
        base: The task whose data these are.
    """

    dataset: Dataset
    truth: dict[str, Any]
    base: Task


class TechniqueSpec(Technique):
    """A question about data: all that makes its tasks, prepares them, grades answers, and explains the grade.

    Register one with `mleredux_register_techniques`; `version` is raised whenever truth or scores change.
    Functions may be imported with the specification, so import pandas, scikit-learn and the like inside them.
    """

    derive: Callable[[Task, str | None], Task] = lambda base, variant: base
    folder: Path
    """With `description.md` (the question, then what efficacy is measured by under `## Efficacy`) and `example.json`,
    a well-formed document of other data."""
    document: type[Document]
    """What the agent writes, into `<id>_analysis.json`."""
    tolerances: str
    """A Markdown list of how near each part of a document must be to the facts, for the description."""
    truth: Callable[[Dataset], dict[str, Any]]
    """`truth(dataset)`: what is true of all rows, as JSON values. Raises `NotApplicable` where there is nothing."""
    assess: Callable[[Any, dict[str, Any]], Facts]
    """`assess(document, truth)`: how right the document is."""
    measure: Callable[[Any, Instance], Efficacy]
    """`measure(document, instance)`: what the recommendation does when it is carried out. Equal documents and data give
    equal results."""
    recommend: Callable[[Any, Dataset], Iterable[str]]
    """`recommend(document, dataset)`: what the document recommends, one line each; no text of the agent's own."""
    plant: Callable[[Dataset, np.random.Generator], Dataset] | None = None
    """`plant(dataset, rng)`: the data changed in a way that is noted in `planted`; all that is random is drawn from
    `rng`. Raises `NotApplicable` where there is too little to change."""
    refuse: Callable[[Task, bool], str | None] | None = None
    """`refuse(base, planted)`: one sentence why the question does not apply to a task, as far as its declaration
    tells; None where it may."""

    def model_post_init(self, context: Any, /) -> None:
        """Its own `derive` and variants."""
        self.__dict__["derive"] = partial(_derive, self)
        if self.plant is not None:
            self.__dict__["variants"] = ("planted-SEED",)


class TechniqueTask(Task):
    """A technique's task: its text is made of the question, the document's form, and the base's description."""

    technique: TechniqueSpec

    def describe(self, *, obfuscated: bool = False) -> str:
        """The text for the agent.

        Raises:
            TaskBroken: A description file is missing.
        """
        return compose(self, obfuscated=obfuscated)


def has_table(base: Task) -> bool:
    """Whether a task may have a table with features of all kinds, by its category."""
    return not base.category.startswith(_WITHOUT_TABLES)


def _derive(technique: TechniqueSpec, base: Task, variant: str | None) -> Task:
    """The task `technique[+variant]@base`.

    Raises:
        NotApplicable: The question does not apply to the task, as far as its declaration tells.
        NotFound: There is no such variant.
    """
    seed = None
    if variant is not None:
        match = _PLANTED.fullmatch(variant)
        if match is None or technique.plant is None:
            hint = "It has planted-0, planted-1, …." if technique.plant else "It has no variants."
            raise NotFound(f"Technique {technique.id} has no variant {variant!r}.", hint=hint)
        seed = int(match[1])
    if base.kind == "technique":
        raise NotApplicable(f"{base.id} is a technique task itself.", hint="Ask it of a competition.")
    if technique.refuse is not None and (why := technique.refuse(base, seed is not None)):
        raise NotApplicable(why)
    description = technique.folder / "description.md"
    return TechniqueTask(
        id=f"{technique.id}{f'+{variant}' if variant else ''}@{base.id}",
        version=f"{technique.version}.{base.version}",
        kind="technique",
        title=f"{technique.title} ({base.title})",
        description=description,
        description_obfuscated=description if base.description_obfuscated else None,
        prepare=partial(prepare, base=base, technique=technique, seed=seed),
        submission=Submission(file=f"{technique.id}_analysis.json", sample=None, document=technique.document),
        answers="truth.json",
        metric=Metric(grader=grader(technique)),
        direction="maximize",
        category=base.category,
        complexity=base.complexity,
        tags=("technique", technique.id, *(("planted",) if seed is not None else ())),
        note=base.note,
        base=base,
        technique=technique,
    )
