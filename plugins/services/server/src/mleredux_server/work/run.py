"""Execute runs with core's pipeline; the run's directory is the result."""

from __future__ import annotations

from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.files import disk_usage
from mleredux.plugin.host import Pipeline

from mleredux_server.work import WorkContext


def work(context: WorkContext) -> dict[str, Any]:
    """Resume a run from its current state.

    Returns:
        `disk_mb`, the disk space it uses.

    Raises:
        ResumeRefused: Another process is running it.
    """
    run = context.store.get(context.job_id)
    run.guard(context.lease.check)
    pipeline = Pipeline(
        context.store,
        context.catalogue,
        context.data,
        base_image=context.settings.base_image,
        cancelled=context.lease.lost,
    )
    pipeline.execute_run(run)
    if context.attempt > 1:
        sweep(context, run)
    return {"disk_mb": disk_mb(run)}


def sweep(context: WorkContext, run: Run) -> None:
    """Stop processes of an earlier attempt, since an attempt that is cancelled early does not check for them."""
    try:
        list(context.catalogue.sandbox(run.spec.sandbox).sweep(context.store.owner, lambda other: other != run.id))
    except SandboxError:
        return  # if an engine does not respond now, it is cleaned up when the server starts


def disk_mb(run: Run) -> int:
    """Return a run's disk usage in megabytes, rounded up."""
    used, _ = disk_usage(run.path)
    return -(-used // 2**20)
