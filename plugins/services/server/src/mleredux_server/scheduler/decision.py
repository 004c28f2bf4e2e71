"""Decide which queued runs start now. A pure function: no clock, no files, no database.

Users take turns: the next one is the user whose active runs have the smallest share of the machine (the largest of
their shares of CPUs, memory and GPUs, divided by the weight of the project; ties go to the user who has waited
longest). Of their runs, the one with the highest priority starts, oldest first. Runs that fit may overtake one that
does not; once that run has waited for `patience` seconds at the head of the queue, resources are reserved for it: runs
started from then on may use only the rest of the machine.

Preemptible runs take no turns: they start when no other run can, and do not count toward the shares. If another run
lacks
only resources, the preemptible runs that started last are stopped for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mleredux.models.formats import plain

from mleredux_server.schemas.accounts import Quota

_ROUNDING = 1e-6
_NO_LIMITS = Quota()
"""The quota of a project that is not listed: it limits no active runs."""
PATIENCE = 30.0
TURN = "its turn"
PREEMPTED = "preemptible runs to stop"
WORKER = "a worker"


class Demand(NamedTuple):
    """Resources of the machine, held by a run or free."""

    cpus: float = 0.0
    memory_mb: float = 0.0
    gpus: float = 0.0

    def plus(self, other: Demand) -> Demand:
        """Return the sum of both."""
        return Demand(self.cpus + other.cpus, self.memory_mb + other.memory_mb, self.gpus + other.gpus)

    def minus(self, other: Demand) -> Demand:
        """Return the difference of both."""
        return Demand(self.cpus - other.cpus, self.memory_mb - other.memory_mb, self.gpus - other.gpus)

    def least(self, other: Demand) -> Demand:
        """Return the minimum of both for each resource."""
        return Demand(*map(min, self, other))

    def share_of(self, machine: Demand) -> float:
        """Return the largest share of the machine's resources."""
        return max((mine / whole for mine, whole in zip(self, machine, strict=True) if whole > 0), default=0.0)

    def fits(self, room: Demand) -> bool:
        """Return whether `self` fits into other resources."""
        return all(mine <= theirs + _ROUNDING for mine, theirs in zip(self, room, strict=True))


NOTHING = Demand()


@dataclass(frozen=True)
class _Scheduled:
    """A run of either type.

    Attributes:
        since: Time when it was queued, or when it started, in seconds.
    """

    id: str
    user: str
    project: str
    demand: Demand
    since: float


@dataclass(frozen=True)
class Waiting(_Scheduled):
    """A queued run."""

    priority: int = 0
    preemptible: bool = False


@dataclass(frozen=True)
class Running(_Scheduled):
    """A run that has started and has not ended.

    Attributes:
        leaving: Whether it was stopped to make room, and has not ended yet.
    """

    preemptible: bool = False
    leaving: bool = False


@dataclass(frozen=True)
class World:
    """The input of a decision.

    Attributes:
        machine: Total resources.
        held_by_others: Resources not held by this server's runs.
        workers: Number of free workers.
        projects: Quotas by project; a missing project has no limits.
        history: Each user's share of the machine in the past, which decays; see `mleredux_server.scheduler.history`.
        served: Time when each user's latest run started, in seconds.
        now: Current time, in seconds.
        queues: Whether the machine is an engine with its own queue, which decides when there are enough resources for a
            run; in that case, only quotas and the order are decided here.
    """

    machine: Demand
    workers: int
    now: float
    held_by_others: Demand = NOTHING
    projects: Mapping[str, Quota] = field(default_factory=dict)
    served: Mapping[str, float] = field(default_factory=dict)
    history: Mapping[str, float] = field(default_factory=dict)
    patience: float = PATIENCE
    queues: bool = False


@dataclass(frozen=True)
class Decision:
    """The runs to start, in order, and brief reasons why the others wait."""

    start: list[str]
    waiting_for: dict[str, str]
    kept_for: str | None = None
    """The run that resources are reserved for."""
    stop: list[str] = field(default_factory=list)
    """Preemptible runs to stop now."""


class _Round:
    """One decision in progress."""

    def __init__(self, running: Iterable[Running], world: World) -> None:
        self.world = world
        self.free = world.machine.minus(world.held_by_others)
        self.workers = world.workers
        self.later, self.later_workers = Demand(), 0
        """Changes of `free` and `workers` once stopped runs have ended, and the runs that wait for them have
        started."""
        self.runs: dict[str, int] = {}
        self.used: dict[str, Demand] = {}
        self.shares: dict[str, Demand] = {}
        self.served = dict(world.served)
        self.kept: Waiting | None = None
        self.newcomers = Demand()
        self.stop: list[str] = []
        self._running = list(running)
        for run in self._running:
            self._count(run)
        self._stoppable = sorted(
            (run for run in self._running if run.preemptible), key=lambda run: (run.leaving, run.since, run.id)
        )

    def share(self, user: str) -> float:
        """Return the user's dominant share of the machine, now and in the past, divided by the weight of their
        projects."""
        used = self.shares.get(user, Demand())
        return used.share_of(self.world.machine) + self.world.history.get(user, 0.0)

    def hindrance(self, run: Waiting) -> str | None:
        """Return the reason why a run can't start now; None if it can."""
        if over := self._over_quota(run):
            return over
        if self.world.queues:
            return None if self.workers >= 1 else WORKER
        if not run.demand.fits(self.world.machine):
            return f"{_lacking(run.demand, self.world.machine)}: more than this machine has"
        room = self.free.least(self.free.plus(self.later))
        workers = min(self.workers, self.workers + self.later_workers)
        lacking = workers < 1 or not run.demand.fits(room)
        if lacking and not run.preemptible and self.kept is None and self._make_room(run):
            return PREEMPTED
        if not run.demand.fits(room):
            if self.kept is None and self.world.now - run.since >= self.world.patience:
                self._keep(run)
            return _lacking(run.demand, room, self.world.machine)
        if workers < 1:
            return WORKER
        if self.kept is not None:
            after = self.newcomers.plus(run.demand).plus(self.kept.demand)
            if not after.fits(self.world.machine.minus(self.world.held_by_others)):
                return "a larger run that has waited longer"
        return None

    def start(self, run: Waiting) -> None:
        """Count a run as running."""
        started = Running(run.id, run.user, run.project, run.demand, self.world.now, run.preemptible)
        self._running.append(started)
        self._count(started)
        self.workers -= 1
        self.served[run.user] = self.world.now
        if self.kept is not None:
            self.newcomers = self.newcomers.plus(run.demand)

    def _make_room(self, run: Waiting) -> bool:
        """Stop preemptible runs for a run that does not fit, latest first; no more than needed, or none if that does
        not suffice."""
        chosen: list[Running] = []
        free, workers = self.free.plus(self.later), self.workers + self.later_workers
        for other in reversed(self._stoppable):  # runs that are being stopped already come first
            if run.demand.fits(free) and workers >= 1:
                break
            chosen.append(other)
            free, workers = free.plus(other.demand), workers + 1
        if not (run.demand.fits(free) and workers >= 1):
            return False
        for other in sorted(chosen, key=lambda run_to_stop: run_to_stop.leaving):
            if run.demand.fits(free.minus(other.demand)) and workers > 1:
                chosen.remove(other)
                free, workers = free.minus(other.demand), workers - 1
        self._stoppable = [other for other in self._stoppable if other not in chosen]
        self.stop += [other.id for other in chosen if not other.leaving]
        self.later, self.later_workers = free.minus(run.demand).minus(self.free), workers - 1 - self.workers
        self._use(Running(run.id, run.user, run.project, run.demand, self.world.now))
        return True

    def _keep(self, run: Waiting) -> None:
        """Reserve resources for a run: runs that start from now on must not block it once the current ones have
        ended.
        """
        self.kept = run
        from_then = run.since + self.world.patience
        for other in self._running:
            if other.since >= from_then:
                self.newcomers = self.newcomers.plus(other.demand)

    def _count(self, run: Running) -> None:
        self.free = self.free.minus(run.demand)
        self._use(run)

    def _use(self, run: Running) -> None:
        self.runs[run.project] = self.runs.get(run.project, 0) + 1
        self.used[run.project] = self.used.get(run.project, Demand()).plus(run.demand)
        if run.preemptible:
            return
        weight = self.world.projects.get(run.project, _NO_LIMITS).weight
        weighted = Demand(*(value / weight for value in run.demand))
        self.shares[run.user] = self.shares.get(run.user, Demand()).plus(weighted)

    def _over_quota(self, run: Waiting) -> str | None:
        allowed = self.world.projects.get(run.project, _NO_LIMITS)
        if allowed.concurrent_runs is not None and self.runs.get(run.project, 0) >= allowed.concurrent_runs:
            return f"the project's {allowed.concurrent_runs} concurrent runs"
        after = self.used.get(run.project, Demand()).plus(run.demand)
        for value, most, unit in (
            (after.cpus, allowed.cpus, "CPUs"),
            (after.memory_mb, allowed.memory_mb, "MB of memory"),
            (after.gpus, allowed.gpus, "GPUs"),
        ):
            if most is not None and value > most + _ROUNDING:
                return f"the project's {plain(most)} {unit}"
        return None


def decide(waiting: Sequence[Waiting], running: Iterable[Running], world: World) -> Decision:
    """Decide which runs start now, and why the others wait."""
    at = _Round(running, world)
    lines: dict[tuple[bool, str], list[Waiting]] = {}
    for run in waiting:
        lines.setdefault((run.preemptible, run.user), []).append(run)
    for line in lines.values():
        line.sort(key=lambda run: (-run.priority, run.since, run.id), reverse=True)  # the next run is last
    # A user whose run can't start is inserted again with their next run.
    turns = [_turn(at, key, line) for key, line in lines.items()]
    heapq.heapify(turns)
    started: list[str] = []
    reasons: dict[str, str] = {}
    hindered: set[tuple[str, Demand, bool]] = set()  # room only shrinks during a decision: equal demands wait too
    while turns:
        preemptible, *_, user = heapq.heappop(turns)
        line = lines[preemptible, user]
        run = line.pop()
        kind = (run.project, run.demand, preemptible)
        if kind in hindered:
            reasons[run.id] = TURN
        elif (reason := at.hindrance(run)) is not None:
            if reason != PREEMPTED:
                hindered.add(kind)
            reasons[run.id] = reason
        else:
            at.start(run)
            started.append(run.id)
        if line:
            heapq.heappush(turns, _turn(at, (preemptible, user), line))
    return Decision(started, reasons, at.kept.id if at.kept else None, at.stop)


def _turn(at: _Round, key: tuple[bool, str], line: list[Waiting]) -> tuple[bool, float, float, float, str]:
    preemptible, user = key
    since = min(run.since for run in line[-1:])
    return (preemptible, round(at.share(user), 9), max(at.served.get(user, since), since), since, user)


def _lacking(demand: Demand, room: Demand, machine: Demand | None = None) -> str:
    """Describe a shortage: `2 CPUs; 0 of 2 are free`."""
    for unit, wanted, free, whole in zip(("CPU", "MB of memory", "GPU"), demand, room, machine or room, strict=True):
        if wanted > free + _ROUNDING:
            several = "s" if unit.endswith("U") and wanted != 1 else ""
            left = f"; {plain(max(free, 0))} of {plain(whole)} are free" if machine is not None else ""
            return f"{plain(wanted)} {unit}{several}{left}"
    raise AssertionError("nothing is lacking")
