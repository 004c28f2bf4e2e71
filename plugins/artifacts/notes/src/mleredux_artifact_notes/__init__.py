"""Artifacts of a run's code: the diffs between its solutions, a runnable notebook, and a reproducibility check.

| modules | contents |
|---|---|
| `solutions` | the solutions of a run, in order; `solutions.diff` |
| `notebook` | `notebook.ipynb` |
| `commands` | `mleredux runs reproduce`, `mleredux runs verify` |
| `reproduce` | a rerun that must create the same submission; comparison by bytes and by values |
| `verify`, `trial` | the score of code rerun on changed data; its execution, also on halves of the test rows |
| `permutation`, `targets` | permuted test ids; changed training targets |
| `rerun`, `tables` | the final code as a command; tables as text |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mleredux.plugin.artifact import Artifact, Report, Run, Verification
    from mleredux.plugin.host import Prepared, StageContext
    from mleredux.plugin.sandbox import Built

mleredux_contract = 2


@hookimpl(trylast=True)
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Produce the artifacts; this hook runs last because solutions are read from the rollout."""
    from mleredux_artifact_notes.notebook import produce_notebook
    from mleredux_artifact_notes.solutions import produce_diff

    return [artifact for artifact in (produce_diff(run), produce_notebook(run)) if artifact is not None]


@hookimpl
def mleredux_register_schemes() -> list[Ref]:
    """Return the scheme of agents that rerun the final code of a run: `reproduce:RUN_DIRECTORY`."""
    return [Ref("reproduce", "mleredux_artifact_notes.reproduce:AGENTS")]


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the commands `mleredux runs reproduce` and `mleredux runs verify`."""
    return [
        Ref("runs reproduce", "mleredux_artifact_notes.commands:reproduce_command"),
        Ref("runs verify", "mleredux_artifact_notes.commands:verify_command"),
    ]


@hookimpl
def mleredux_verify(
    context: StageContext, built: Built, prepared: Prepared, report: Report, folder: Path
) -> Verification:
    """Execute the final code again on permuted test data, and return the verdict."""
    from mleredux_artifact_notes.trial import Trial
    from mleredux_artifact_notes.verify import verify

    return verify(Trial(context.run, context.task, prepared.public, folder, context, prepared, built), report)
