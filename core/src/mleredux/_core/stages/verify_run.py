"""Verify a run that has ended."""

from __future__ import annotations

from collections.abc import Callable

from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.ledger import exposures
from mleredux._core.stages.prepare import prepare
from mleredux._core.stages.produce import add_artifact, produce
from mleredux._core.stages.steps import judge
from mleredux._core.store import Run, RunStore
from mleredux.errors import MlereduxError
from mleredux.models import Report


def verify_run(
    run: Run, store: RunStore, catalogue: Catalogue, *, progress: Callable[[str], None] = lambda _message: None
) -> Report:
    """Judge the result of a run again, after executing its final code again; artifacts are recreated.

    Args:
        run: The run.
        store: The store of the run.
        catalogue: The plugins.
        progress: Called with short progress messages.

    Returns:
        The report with the verdict.

    Raises:
        MlereduxError: The run has not ended, was not graded, or is still running.
    """
    report = run.report
    if not run.state.final or report is None:
        raise MlereduxError(f"Run {run.id} has no report to verify.", hint="Choose a graded run.")
    if not run.lock.acquire():
        raise MlereduxError(f"Run {run.id} is being executed.", hint="Wait until it has ended.")
    try:
        context = StageContext(
            run=run,
            owner=store.owner,
            catalogue=catalogue,
            data=DataStore(run.spec.data_dir),
            slots=Slots(store.path),
            cancelled=lambda: False,
            progress=progress,
        )
        prepared = prepare(context.task, catalogue, context.data, progress=progress)
        isolated = context.sandbox.capabilities.isolated
        exposed = exposures(run, prepared.private, context.task.submission.file, isolated=isolated)
        judge(context, prepared, report, exposed, again=True)
        before = run.manifest
        made = {artifact.path for artifact in produce(run, catalogue).artifacts}
        for artifact in before.artifacts if before else ():
            if artifact.path not in made and (run.path / artifact.path).is_file():
                add_artifact(run, artifact)
    finally:
        run.lock.release()
    judged = run.report
    assert judged is not None
    return judged
