"""A technique as one object, and the tasks that it derives from base tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable, NotFound
from mleredux.plugin.task import Metric, Submission, Task
from mleredux.plugin.technique import Technique

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.declaration.description import compose
from mleredux_techniques._kit.declaration.grader import grader, solution
from mleredux_techniques._kit.declaration.preparation import prepare
from mleredux_techniques._kit.judging.comparison import Difference
from mleredux_techniques._kit.judging.marks import Efficacy, Facts
from mleredux_techniques._kit.planting.competition import planted_competition
from mleredux_techniques._kit.planting.seeds import parse
from mleredux_techniques._kit.vocabulary.document import Document

WITH_TABLES = ("Tabular", "Text Classification", "Text (Other)", "Forecasting", "Training LLMs", "Signal Processing")
"""Categories of tasks with a table of features of all kinds."""
VARIANTS = ("planted-SEED", "planted-public-SEED")


class TechniqueSpec(Technique):
    """A question about data: creates and prepares its tasks, grades answers, and explains the grades.

    Register one with `mleredux_register_techniques`; increase `version` whenever the truth or the scores change.
    Functions are imported with the specification, so import pandas, scikit-learn and the like inside them.
    """

    derive: Callable[[Task, str | None], Task] = lambda base, variant: base
    folder: Path
    """Folder with `description.md` (the question, the tolerances under `## Facts`, and the efficacy measure under
    `## Efficacy`) and `example.json`, a well-formed document for other data."""
    document: type[Document]
    """The document that the agent writes to `<id>_analysis.json`."""
    tolerances: str = ""
    """A Markdown list of the tolerances of each part of a document, if `description.md` has no `## Facts`."""
    truth: Callable[[Dataset], dict[str, Any]] = lambda dataset: {}
    """`truth(dataset)`: the facts about all rows as JSON values, unless `reference` computes them. Raises
    `NotApplicable` if there are no facts."""
    assess: Callable[[Any, dict[str, Any]], Facts]
    """`assess(document, truth)`: scores the correctness of the document."""
    measure: Callable[[Any, Instance], Efficacy]
    """`measure(document, instance)`: measures the effect of executing the recommendation. Equal documents and data give
    equal results."""
    recommend: Callable[[Any, Dataset], Iterable[str]]
    """`recommend(document, dataset)`: the document's recommendations, one line each, without the agent's free text."""
    reference: Callable[[Instance], dict[str, Any]] | None = None
    """`reference(instance)`: values that `measure` needs and that are slow to compute; added to the truth when the task
    is prepared."""
    files: Callable[[Dataset], dict[str, str]] | None = None
    """`files(dataset)`: further public files, name → text, besides the tables and `question.json`."""
    images: bool = False
    """Whether the question applies to images, each described by columns for its file, colors and thumbnail."""
    private_parts: tuple[str, ...] = ()
    """Components of `assess` whose truth uses the labels of private test rows if the data is not planted; they are
    withheld from runs that are graded with these labels."""
    gap: Callable[[Instance], Difference] | None = None
    """`gap(instance)`: the gain of good advice over naive advice, measured on the training rows alone; planted
    instances are redrawn until it is large enough."""
    solution: Callable[[Instance], dict[str, Any]] | None = None
    """`solution(instance)`: the document of the truth and the strong recommendation, as JSON values, for
    exports and certificates; never shown to agents."""
    plant: Callable[[Dataset, np.random.Generator], Dataset] | None = None
    """`plant(dataset, rng)`: the data with changes recorded in `planted`; all randomness comes from `rng`. Raises
    `NotApplicable` if there is too little data to change."""
    refuse: Callable[[Task, bool], str | None] | None = None
    """`refuse(base, planted)`: a sentence about why the question does not apply to a task, judged by its declaration;
    None if it may apply."""

    def model_post_init(self, context: Any, /) -> None:
        """Set `derive`, and the variants if the technique can plant data."""
        self.__dict__["derive"] = partial(_derive, self)
        if self.plant is not None:
            self.__dict__["variants"] = VARIANTS


class TechniqueTask(Task):
    """A technique's task: its text consists of the question, the document's format, and the base's description."""

    technique: TechniqueSpec

    def describe(self, *, obfuscated: bool = False) -> str:
        """Return the text for the agent.

        Raises:
            TaskBroken: A description file is missing.
        """
        return compose(self, obfuscated=obfuscated)


def _derive(technique: TechniqueSpec, base: Task, variant: str | None) -> Task:
    """Return the task `technique[+variant]@base`.

    Raises:
        NotApplicable: The question does not apply to the task, judged by its declaration.
        NotFound: The variant does not exist.
    """
    seed = None
    if variant is not None:
        seed = parse(variant)
        if seed is None or technique.plant is None:
            hint = f"Its variants are {', '.join(VARIANTS)}." if technique.plant else "It has no variants."
            raise NotFound(f"Technique {technique.id} has no variant {variant!r}.", hint=hint)
    if base.kind == "technique":
        raise NotApplicable(f"{base.id} is already a technique task.", hint="Apply the technique to a competition.")
    generated = seed is not None or "planted" in base.tags
    if technique.refuse is not None and (why := technique.refuse(base, generated)):
        raise NotApplicable(why)
    base_id = base.id
    if seed is not None:
        base = planted_competition(base, seed)
    description = technique.folder / "description.md"
    return TechniqueTask(
        id=f"{technique.id}{f'+{variant}' if variant else ''}@{base_id}",
        version=f"{technique.version}.{base.version}",
        kind="technique",
        title=f"{technique.title} ({base.title})",
        description=description,
        description_obfuscated=description if base.description_obfuscated else None,
        prepare=partial(prepare, base=base, technique=technique, seed=seed),
        submission=Submission(file=f"{technique.id}_analysis.json", sample=None, document=technique.document),
        answers="truth.json",
        solution=partial(solution, technique) if technique.solution else None,
        metric=Metric(grader=grader(technique)),
        direction="maximize",
        category=base.category,
        complexity=base.complexity,
        tags=("technique", technique.id, *(("planted",) if generated else ())),
        note=base.note,
        base=base,
        technique=technique,
    )
