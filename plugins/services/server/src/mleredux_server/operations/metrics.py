"""Prometheus metrics, in the service's own registry.

No label has a value chosen by users: names of users, projects, tasks and agents are unbounded, and must not be
    disclosed to clients that may see only the metrics.
"""

from __future__ import annotations

import platform
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from mleredux import __version__
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import State
from mleredux.plugin.host import Slots, machine_slots
from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.database.tables import BuildRow, Delivery, Job, RunRow, Submission, now
from mleredux_server.runs.summary import PREEMPTED
from mleredux_server.scheduler.tally import REASONS, Tally
from mleredux_server.service import Service

_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_FRESH_SECONDS = 5.0
RUN_STATUSES = (*map(str, State), PREEMPTED)
JOB_KINDS = ("run", "grade", "build")


class Metrics:
    """The service's own counters.

    Args:
        service: The measured service.

    Attributes:
        requests: Response times in seconds, by route, method and class of status; for event streams until they
            begin.
        in_flight: Requests in progress.
        followers: Open event streams.
    """

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.requests = Histogram(
            "mleredux_http_request_duration_seconds",
            "Response time in seconds; for event streams, until they begin.",
            ("route", "method", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge("mleredux_http_requests_in_flight", "Requests in progress.", registry=self.registry)
        self.followers = Gauge("mleredux_event_streams", "Open event streams.", registry=self.registry)
        about = ("version", "python", "database")
        build = Gauge("mleredux_build_info", "Versions of the running software.", about, registry=self.registry)
        build.labels(__version__, platform.python_version(), service.database.engine.dialect.name).set(1)
        ProcessCollector(registry=self.registry)
        self.registry.register(Stored(service))


class Stored(Collector):
    """Numbers from the database and the machine, queried at most once in `fresh` seconds.

    Args:
        service: The measured service.
        fresh: Seconds for which a result is reused.
    """

    def __init__(self, service: Service, fresh: float = _FRESH_SECONDS) -> None:
        self._service, self._fresh, self._has = service, fresh, machine_slots()
        self._lock = threading.Lock()
        self._until, self._answers = 0.0, False
        self._counts, self._slots = list[Metric](), list[Metric]()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not query the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the numbers; the last known ones if the database does not respond."""
        with self._lock:
            if time.monotonic() >= self._until:
                try:
                    self._counts, self._answers = list(self._counted()), True
                except SQLAlchemyError:
                    self._answers = False
                self._slots = list(self._machine())
                self._until = time.monotonic() + self._fresh
            up = _gauge("mleredux_database_up", "Whether the database responded.", self._answers)
            known = [up, *self._counts, *self._slots]
        yield from known
        free = shutil.disk_usage(self._service.settings.state_dir).free
        yield _gauge("mleredux_disk_free_bytes", "Free space in the runs directory.", free)
        least = self._service.settings.min_free_mb * 2**20
        yield _gauge("mleredux_disk_least_bytes", "Minimum free space to start jobs.", least)
        if self._service.scheduler is not None:
            yield from _tallied(self._service.scheduler.tally)

    def _machine(self) -> Iterator[Metric]:
        has, mib = self._has, 2**20
        try:
            held = list(Slots(self._service.store.path, has).held())
        except (MlereduxError, OSError):  # the other numbers are valid even if the ledger is damaged
            return
        for name, help_, total, used in (
            ("cpus", "CPUs", has.cpus, sum(slot.cpus for slot in held)),
            ("memory_bytes", "Memory", has.memory_mb * mib, sum(slot.memory_mb for slot in held) * mib),
            ("gpus", "GPUs", len(has.gpus), sum(len(slot.gpus) for slot in held)),
        ):
            yield _gauge(f"mleredux_machine_{name}", f"{help_} available to runs.", total)
            yield _gauge(f"mleredux_machine_{name}_handed_out", f"{help_} held by runs.", used)

    def _counted(self) -> Iterator[Metric]:
        with self._service.database.reading() as session:

            def count(column: Any, *where: Any) -> dict[str, int]:
                query = select(column, func.count()).where(*where).group_by(column)
                return {str(value): number for value, number in session.execute(query)}

            yield _by("mleredux_runs", "Runs in the store.", "status", RUN_STATUSES, count(RunRow.status))
            yield _by("mleredux_submissions", "Submissions without an agent.", "status", (), count(Submission.status))
            yield _by("mleredux_builds", "Builds of agents.", "status", (), count(BuildRow.status))
            for name, help_, state in (("waiting", "Queued jobs.", "queued"), ("running", "Running jobs.", "started")):
                counts = count(Job.kind, Job.state == state, Job.kind.in_(JOB_KINDS))
                yield _by(f"mleredux_jobs_{name}", help_, "kind", JOB_KINDS, counts)
            queued = session.scalar(select(func.min(Job.queued_at)).where(Job.state == "queued"))
            oldest = max((now() - queued).total_seconds(), 0.0) if queued is not None else 0.0
            help_ = "Seconds since the oldest waiting job was queued."
            yield _gauge("mleredux_queue_oldest_wait_seconds", help_, oldest)
            failing = (Delivery.next_at.is_not(None), Delivery.attempts >= 3)
            undelivered = session.scalar(select(func.count(Delivery.id)).where(*failing)) or 0
            help_ = "Webhook messages that could not be delivered in three attempts."
            yield _gauge("mleredux_webhook_messages_undelivered", help_, undelivered)


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_, value=float(value))


def _by(name: str, help_: str, label: str, known: Iterable[str], counts: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, help_, labels=[label])
    for value in sorted({*known, *counts}):
        family.add_metric([value], counts.get(value, 0))
    return family


def _counters(name: str, help_: str, counts: Iterable[tuple[Sequence[str], float]], *labels: str) -> Metric:
    family = CounterMetricFamily(name, help_, labels=labels)
    for values, count in counts:
        family.add_metric(values, count)
    return family


def _tallied(tally: Tally) -> Iterator[Metric]:
    yield _by("mleredux_workers", "Live worker processes.", "state", ("busy", "idle"), tally.workers)
    taken = [(pair, tally.taken_away[pair]) for pair in product(JOB_KINDS, REASONS)]
    yield _counters("mleredux_workers_started", "Started worker processes.", [((), tally.workers_started)])
    yield _counters("mleredux_workers_died", "Worker processes that failed or were killed.", [((), tally.workers_died)])
    started, retried = ([((kind,), counts[kind]) for kind in JOB_KINDS] for counts in (tally.started, tally.retried))
    yield _counters("mleredux_jobs_started", "Jobs assigned to workers.", started, "kind")
    yield _counters("mleredux_jobs_retried", "Jobs queued again because their worker exited.", retried, "kind")
    yield _counters("mleredux_jobs_taken_away", "Jobs whose worker was killed by the server.", taken, "kind", "reason")
    longest = "Longest time since the lease of a running job was renewed."
    yield _gauge("mleredux_lease_age_seconds", longest, tally.silence)
    yield _counters("mleredux_jobs_ended", "Ended jobs.", sorted(tally.ended.copy().items()), "kind", "outcome")
    age = max(time.monotonic() - tally.round_at, 0.0)
    yield _gauge("mleredux_dispatcher_last_round_seconds", "Seconds since the dispatcher's last successful round.", age)
