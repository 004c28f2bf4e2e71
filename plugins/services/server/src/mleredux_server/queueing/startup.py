"""At the start: the database compared with what lies on disk."""

from __future__ import annotations

import structlog
from mleredux.errors import MlereduxError
from sqlalchemy import delete, select

from mleredux_server.database.tables import Idempotency, Job, RunRow
from mleredux_server.queueing.jobs import Started
from mleredux_server.runs import drop_uncreated
from mleredux_server.service import Service

_LOG = structlog.get_logger()


def recover(service: Service) -> dict[str, Started]:
    """Remove what was never acknowledged; find what is worked on."""
    with service.database.reading() as session:
        uncreated = session.scalars(select(Job.id).where(Job.state == "creating", Job.kind == "run")).all()
    if uncreated:
        drop_uncreated(service, uncreated)
    with service.database.writing() as session:
        session.execute(delete(Idempotency).where(Idempotency.status.is_(None)))
    with service.database.reading() as session:
        return {job.id: Started.of(job) for job in session.scalars(select(Job).where(Job.state == "started"))}


def sweep(service: Service) -> None:
    """End what killed workers left in sandboxes and nobody will take up again."""
    with service.database.reading() as session:
        unfinished = set(session.scalars(select(Job.id).where(Job.state != "ended", Job.kind == "run")))
        sandboxes = list(session.scalars(select(RunRow.sandbox).distinct()))
    for name in sandboxes:
        try:
            service.catalogue.sandbox(name).sweep(
                service.store.owner, lambda run_id: run_id in unfinished or service.store.is_alive(run_id)
            )
        except MlereduxError as error:
            _LOG.warning("a sandbox can't be swept now", sandbox=name, reason=str(error))
