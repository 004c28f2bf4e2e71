"""Runs: core's pipeline brings them to their end; the directory is the result."""

from __future__ import annotations

from typing import Any

from mleredux.errors import SandboxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.files import disk_usage
from mleredux.plugin.host import Pipeline

from mleredux_server.work import WorkContext


def work(context: WorkContext) -> dict[str, Any]:
    """Go on with a run where it is.

    Returns:
        `disk_mb`, what it left.

    Raises:
        ResumeRefused: Another process works on it.
    """
    run = context.store.get(context.job_id)
    pipeline = Pipeline(context.store, context.catalogue, context.data, base_image=context.settings.base_image)
    pipeline.go_on(run)
    if context.attempt > 1:
        sweep(context, run)
    return {"disk_mb": disk_mb(run)}


def sweep(context: WorkContext, run: Run) -> None:
    """Remove what an earlier attempt left running; an attempt that is cancelled early never looks for it."""
    try:
        context.catalogue.sandbox(run.spec.sandbox).sweep(context.store.owner, lambda other: other != run.id)
    except SandboxError:
        return  # an engine that does not answer now is swept when the server starts


def disk_mb(run: Run) -> int:
    """Megabytes that a run left, rounded up."""
    used, _ = disk_usage(run.path)
    return -(-used // 2**20)
