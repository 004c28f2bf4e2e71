"""The technique `debugging`."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.debugging import efficacy, facts, instances
from mleredux_techniques.debugging.document import DebuggingAnalysis


def _refuse(base: Task, planted: bool) -> str | None:
    if planted:
        return None
    return f"debugging does not apply to {base.id}: it has no script; ask debugging+planted-1@{base.id}."


def _recommend(document: DebuggingAnalysis, dataset: Dataset) -> list[str]:
    return []


technique = TechniqueSpec(
    id="debugging",
    version="1",
    title="Debugging: the faults of a training script, and its repair",
    folder=Path(__file__).parent,
    document=DebuggingAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    reference=efficacy.reference,
    files=facts.files,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
    refuse=_refuse,
)
