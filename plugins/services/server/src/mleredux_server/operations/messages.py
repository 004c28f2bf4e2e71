"""Messages of webhooks, stored in the same transaction as the event that they report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.identity import new_id
from mleredux_server.database.tables import Delivery, Experiment, RunRow, Webhook, now
from mleredux_server.runs.summary import OPEN

EVENTS = ("run.ended", "experiment.ended")


def announce(session: Session, run_id: str) -> None:
    """Store the messages about the end of a run, in the transaction that ends it."""
    row = session.get(RunRow, run_id)
    if row is None:
        return
    hooks = session.scalars(
        select(Webhook).where(Webhook.project_id == row.project_id, Webhook.disabled_at.is_(None))
    ).all()
    if not hooks:
        return
    session.refresh(row)
    names = ("id", "task", "agent", "seed", "labels", "status", "cause", "message", "score", "medal", "verdict")
    data = {name: getattr(row, name) for name in names} | {"project": row.project_id, "experiment": row.experiment_id}
    _store(session, hooks, "run.ended", data)
    if row.experiment_id is None:
        return
    experiment = session.get(Experiment, row.experiment_id, with_for_update=True)  # the last two runs may end at once
    same = RunRow.experiment_id == row.experiment_id
    grouped = select(RunRow.status, func.count()).where(same).group_by(RunRow.status)
    counts = {str(status): int(number) for status, number in session.execute(grouped)}
    if experiment is not None and not set(counts) & set(OPEN):
        about = {"id": experiment.id, "name": experiment.name, "project": experiment.project_id, "counts": counts}
        _store(session, hooks, "experiment.ended", about)


def probe(session: Session, hook: Webhook) -> Delivery:
    """Store a message for the event `test`."""
    [delivery] = _store(session, [hook], "test", {"webhook": hook.id})
    return delivery


def _store(session: Session, hooks: Sequence[Webhook], event: str, data: dict[str, Any]) -> list[Delivery]:
    at = now()
    body = json.dumps({"type": event, "timestamp": at.isoformat(), "data": data})
    wanted = [hook for hook in hooks if event in (*hook.events, "test")]
    deliveries = [
        Delivery(id=new_id("msg"), webhook_id=hook.id, event=event, body=body, created_at=at, next_at=at, attempts=0)
        for hook in wanted
    ]
    session.add_all(deliveries)
    return deliveries
