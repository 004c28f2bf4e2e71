"""When queued runs will start, by simulating the scheduler's decisions as active runs are expected to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from mleredux_http_api import QueuePlace
from sqlalchemy import select

from mleredux_server.database import Database, batches
from mleredux_server.database.tables import RunRow
from mleredux_server.runs.summary import ENDED
from mleredux_server.scheduler.decision import Running, Waiting, World, decide

MOST_STEPS = 200
"""Maximum number of ends of runs that are simulated."""
_LEAVING = 1.0
"""Seconds until a stopped run has released its resources."""
_FRESH_SECONDS = 10.0
_MOST_PAST = 5000


@dataclass(frozen=True)
class Input:
    """The input of the scheduler's last decision."""

    waiting: Sequence[Waiting]
    running: Sequence[Running]
    world: World


class Forecasts:
    """The forecast for all queued runs, computed on request, at most once per decision.

    It is recomputed after ten seconds, or if it does not contain a requested run.

    Args:
        database: The database, whose ended runs are used to estimate durations.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seen: Input | None = None
        self._source: Input | None = None
        self._lock = threading.Lock()
        self._known: tuple[float, dict[str, QueuePlace]] = (0.0, {})

    def of(self, run_id: str) -> QueuePlace | None:
        """Return a run's place in the queue; None if it is not queued."""
        with self._lock:
            (until, known), seen = self._known, self.seen
            if seen is None:  # nothing is queued
                return None
            if seen is not self._source and (time.monotonic() >= until or run_id not in known):
                known, self._source = forecast(seen, self._durations(seen)), seen
                self._known = time.monotonic() + _FRESH_SECONDS, known
            return known.get(run_id)

    def _durations(self, seen: Input) -> dict[str, float]:
        """Return the expected seconds of each run: the median of the same agent on the same task, else that of the
        agent, else its time limit."""
        ids = [*(run.id for run in seen.waiting), *(run.id for run in seen.running)]
        with self._database.reading() as session:
            columns = (RunRow.task, RunRow.agent, RunRow.started_at, RunRow.ended_at)
            query = select(*columns).where(RunRow.status.in_(ENDED), RunRow.started_at.is_not(None))
            past = session.execute(query.order_by(RunRow.created_at.desc()).limit(_MOST_PAST)).all()
            own = select(RunRow.id, RunRow.task, RunRow.agent, RunRow.limits)
            rows = [row for some in batches(ids) for row in session.execute(own.where(RunRow.id.in_(some)))]
        spans: dict[tuple[str, str], list[float]] = {}
        for task, agent, started, ended in past:
            if started is None or ended is None:
                continue
            for key in ((task, agent), ("", agent)):
                spans.setdefault(key, []).append((ended - started).total_seconds())
        durations: dict[str, float] = {}
        for run_id, task, agent, limits in rows:
            known = spans.get((task, agent)) or spans.get(("", agent))
            durations[run_id] = median(known) if known else float(limits.get("time_limit") or 3600.0)
        return durations


def forecast(seen: Input, durations: Mapping[str, float]) -> dict[str, QueuePlace]:
    """Simulate the decisions.

    Args:
        seen: The queue, the active runs, and the machine.
        durations: Expected seconds of each run.
    """
    begun, now = seen.world.now, seen.world.now
    waiting, running = {run.id: run for run in seen.waiting}, {run.id: run for run in seen.running}
    queued = list(waiting)
    left = {run_id: durations.get(run_id, 3600.0) for run_id in [*queued, *running]}
    ends = {run.id: max(now + 1, run.since + left[run.id]) for run in seen.running}
    free, served = seen.world.workers, dict(seen.world.served)
    forecasts: dict[str, QueuePlace] = {}
    for _ in range(MOST_STEPS):
        world = replace(seen.world, now=now, workers=free, served=served)
        decision = decide(list(waiting.values()), list(running.values()), world)
        for run_id in decision.start:
            run = waiting.pop(run_id)
            if run_id in queued:
                forecasts.setdefault(run_id, QueuePlace(position=len(forecasts) + 1, starts_in=now - begun))
            running[run_id] = Running(run.id, run.user, run.project, run.demand, now, run.preemptible)
            served[run.user] = now
            free -= 1
            ends[run_id] = now + left[run_id]
        for run_id in decision.stop:
            running[run_id] = replace(running[run_id], leaving=True)
        if not waiting or not running:
            break
        leaving = [run for run in running.values() if run.leaving]
        ends = {run_id: end for run_id, end in ends.items() if not running[run_id].leaving}  # preempted runs are queued
        now = now + _LEAVING if leaving else max(now, min(ends.values()))
        for ended in leaving or [running[min(ends, key=lambda run_id: ends[run_id])]]:
            del running[ended.id]
            free += 1
            if ends.pop(ended.id, None) is None:
                waiting[ended.id] = Waiting(ended.id, ended.user, ended.project, ended.demand, now, preemptible=True)
    rest = [run for run in seen.waiting if run.id not in forecasts]
    rest = sorted(rest, key=lambda run: (-run.priority, run.since, run.id))
    later = enumerate(rest, len(forecasts) + 1)
    return forecasts | {run.id: QueuePlace(position=place, starts_in=None) for place, run in later}
