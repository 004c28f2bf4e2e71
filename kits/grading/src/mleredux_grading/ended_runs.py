"""Grade a finished run again, after its task or grader was fixed, or verify it; every report is kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mleredux._core.data.datastore import DataStore
from mleredux._core.executors import open_nodes
from mleredux._core.plugins import Catalogue
from mleredux._core.resume import versions_of
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.grade import grade
from mleredux._core.stages.grade_versions import grade_versions
from mleredux._core.stages.ledger import exposures
from mleredux._core.stages.prepare import prepare
from mleredux._core.stages.produce import add_artifact, produce
from mleredux._core.stages.run_agent import agent_started
from mleredux._core.stages.steps import judge
from mleredux._core.store import Run, RunStore
from mleredux._core.store.files import damaged, read_bounded, write_atomically
from mleredux._core.store.run import GRADES_FILE
from mleredux.errors import MlereduxError
from mleredux.models import Report, Task
from pydantic import TypeAdapter


def regrade(run: Run, catalogue: Catalogue, data: DataStore | None = None) -> tuple[Report, Report]:
    """Grade the submission of a finished run, and all its versions, with the installed task and grader.

    Reports are kept in `grades.json`, oldest first, each with the versions of task, data and packages. The verdict uses
    the evidence of the original run.

    Args:
        run: The run.
        catalogue: The plugins.
        data: The store of data; None: the folder that the run used.

    Returns:
        The previous report and the new report.

    Raises:
        MlereduxError: The run has no report, is still running, or does not match the current data of the task; or its
            object store does not respond, in which case the run is graded on this machine, and published when it is
            graded again.
    """
    with _alone(run):
        old, ran = run.report, run.log.state.ran
        if old is None or ran is None:
            raise MlereduxError(f"Run {run.id} has no report.", hint="Resume it with `mleredux run --resume`.")
        task = catalogue.task(run.spec.task)
        prepared = prepare(task, catalogue, data or DataStore(run.spec.data_dir))
        submission = run.path / ran.submitted if isinstance(ran.submitted, Path) else ran.submitted
        same: dict[str, Any] = {"shown_path": ran.submission, "limit": old.limit, "ledger": old.ledger}
        fresh = grade(task, submission, prepared.private, catalogue, **same)
        if old.valid_submission and not fresh.valid_submission and prepared.digest != run.use.task_data:
            raise MlereduxError(
                f"Run {run.id} used different data for {task.id}: {fresh.message}",
                hint="Its report is unchanged; prepare the data that it used, or run the agent again.",
            )
        new = fresh.judged(old.verdict.evidence, old.verdict.verification)
        _keep(run, catalogue, task, old, new, prepared.digest)
        if versions := run.submissions():
            graded = {submission: new} if isinstance(submission, Path) else {}
            started = agent_started(run)
            run.write_scores(
                grade_versions(task, versions, prepared.private, catalogue, started_at=started, graded=graded)
            )
        run.write_report(new)
        produce(run, catalogue)
        if run.ticket.get("store"):
            open_nodes(catalogue).publish(run)
    return old, new


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
    with _alone(run):
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
        paths = {artifact.path for artifact in produce(run, catalogue).artifacts}
        for artifact in before.artifacts if before else ():
            if artifact.path not in paths and (run.path / artifact.path).is_file():
                add_artifact(run, artifact)
    judged = run.report
    assert judged is not None
    return judged


@contextlib.contextmanager
def _alone(run: Run) -> Iterator[None]:
    """Hold the lock of a run, which no process may be executing."""
    with run.lock.attempt() as acquired:
        if not acquired:
            raise MlereduxError(f"Run {run.id} is being executed.", hint="Wait until it has ended.")
        yield


def _keep(run: Run, catalogue: Catalogue, task: Task, old: Report, new: Report, data: str) -> None:
    path = run.path / GRADES_FILE
    use, now = run.use, versions_of(run, catalogue)
    grader = catalogue.entries("graders").get(str(task.metric.grader))
    if grader is not None and grader.plugin.distribution and grader.plugin.version:
        now[grader.plugin.distribution] = grader.plugin.version
    kept = [_entry(old, use.task_data, use.packages)]
    if path.exists():
        try:
            kept = TypeAdapter(list[dict[str, Any]]).validate_json(read_bounded(path))
        except (OSError, ValueError) as error:
            raise damaged(path, error) from error
    kept.append(_entry(new, data, now))
    write_atomically(path, json.dumps(kept, indent=1) + "\n")


def _entry(report: Report, data: str | None, packages: dict[str, str]) -> dict[str, Any]:
    return {
        "graded_at": report.created_at.isoformat(),
        "task_version": report.task_version,
        "task_data": data,
        "packages": packages,
        "report": report.model_dump(mode="json"),
    }
