"""The six techniques, and the tasks that they make of others."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from mleredux.errors import NotApplicable, NotFound
from mleredux.plugin.task import Metric, Submission, Task
from mleredux.plugin.technique import Technique

from mleredux_techniques.columns import REGRESSION_METRICS
from mleredux_techniques.description import compose
from mleredux_techniques.grading import grader
from mleredux_techniques.preparing import prepare
from mleredux_techniques.schemas import DOCUMENTS
from mleredux_techniques.texts import TITLES

HERE = Path(__file__).parent
VERSION = "1"
_PLANTED = re.compile(r"planted-(0|[1-9][0-9]{0,8})")
_WITHOUT_TABLES = ("Image", "Audio", "Video", "Object Detection")
WITH_TABLES = ("Tabular", "Text Classification", "Text (Other)", "Forecasting", "Training LLMs", "Signal Processing")


class TechniqueTask(Task):
    """A technique's task: its text is made of the question, the document's form, and the base's description."""

    def describe(self, *, obfuscated: bool = False) -> str:
        """The text for the agent.

        Raises:
            TaskBroken: A description file is missing.
        """
        return compose(self, obfuscated=obfuscated)


def derive(base: Task, variant: str | None, technique: str) -> Task:
    """The task `technique[+variant]@base`.

    Raises:
        NotApplicable: The question makes no sense of the task, as far as its declaration tells.
        NotFound: There is no such variant.
    """
    seed = None
    if variant is not None:
        if (match := _PLANTED.fullmatch(variant)) is None:
            raise NotFound(f"Technique {technique} has no variant {variant!r}.", hint="It has planted-0, planted-1, ….")
        seed = int(match[1])
    _check(base, technique, planted=seed is not None)
    name = f"{technique}+{variant}" if variant else technique
    return TechniqueTask(
        id=f"{name}@{base.id}",
        version=f"{VERSION}.{base.version}",
        kind="technique",
        title=f"{TITLES[technique]} ({base.title})",
        description=HERE / "descriptions" / f"{technique}.md",
        description_obfuscated=HERE / "descriptions" / f"{technique}.md" if base.description_obfuscated else None,
        prepare=partial(prepare, base=base, technique=technique, seed=seed),
        submission=Submission(file=f"{technique}_analysis.json", sample=None, document=DOCUMENTS[technique]),
        answers="truth.json",
        metric=Metric(grader=grader(technique, TITLES[technique])),
        direction="maximize",
        category=base.category,
        complexity=base.complexity,
        tags=("technique", technique, *(("planted",) if seed is not None else ())),
        note=base.note,
        base=base,
    )


def _check(base: Task, technique: str, *, planted: bool) -> None:
    if base.kind == "technique":
        raise NotApplicable(f"{base.id} is a technique task itself.", hint="Ask it of a competition.")
    if technique == "imbalance" and base.metric.id in REGRESSION_METRICS:
        raise NotApplicable(
            f"imbalance makes no sense of {base.id}: its metric {base.metric.id} is for numbers, not for classes."
        )
    if technique in ("encoding", "missing") and not planted and base.category.startswith(_WITHOUT_TABLES):
        what = "categorical features to encode" if technique == "encoding" else "features with missing values"
        raise NotApplicable(
            f"{technique} makes no sense of {base.id}: it is about {base.category}, its data have no {what}."
        )


def _technique(name: str) -> Technique:
    return Technique(
        id=name,
        version=VERSION,
        title=TITLES[name],
        derive=partial(derive, technique=name),
        variants=("planted-SEED",),
        categories=WITH_TABLES if name in ("encoding", "missing") else (),
    )


imbalance, missing, encoding, cv, scaling, leakage = map(_technique, TITLES)
