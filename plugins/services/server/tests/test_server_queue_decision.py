"""Which runs start: the laws that hold for any queue, machine and quotas."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_server.scheduler.decision import (
    NOTHING,
    PREEMPTED,
    TURN,
    WORKER,
    Decision,
    Demand,
    Running,
    Waiting,
    World,
    decide,
)
from mleredux_server.schemas.accounts import Quota

USERS, PROJECTS = ("ada", "bob", "cyd"), ("p1", "p2", "p3")
ROUNDING = 1e-6

demands = st.builds(
    Demand,
    st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    st.sampled_from([100.0, 500.0, 2000.0]),
    st.sampled_from([0.0, 0.0, 1.0]),
)
names = st.tuples(st.sampled_from(USERS), st.sampled_from(PROJECTS))
limits = st.one_of(st.none(), st.integers(0, 4))
allowances = st.builds(
    Quota, concurrent_runs=limits, cpus=limits, gpus=limits, memory_mb=st.none(), weight=st.sampled_from([1.0, 2.0])
)


@st.composite
def queues(draw: st.DrawFn) -> list[Waiting]:
    asked = draw(st.lists(st.tuples(names, demands, st.integers(0, 90), st.integers(-2, 2)), max_size=14))
    return [
        Waiting(f"w{number}", user, project, demand, float(since), priority)
        for number, ((user, project), demand, since, priority) in enumerate(asked)
    ]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Running], World]:
    """A machine, quotas, and running runs that obey both."""
    world = World(
        machine=Demand(draw(st.sampled_from([1.0, 2.0, 4.0, 8.0])), 4000.0, draw(st.sampled_from([0.0, 2.0]))),
        workers=draw(st.integers(0, 6)),
        now=100.0,
        held_by_others=draw(st.sampled_from([NOTHING, Demand(1.0, 500.0, 0.0)])),
        projects=draw(st.dictionaries(st.sampled_from(PROJECTS), allowances)),
        served=draw(st.dictionaries(st.sampled_from(USERS), st.floats(0, 99))),
        patience=draw(st.sampled_from([0.0, 30.0, math.inf])),
    )
    begun = [replace(run, id=f"r{run.id}") for run in draw(queues())]
    started = decide(begun, [], replace(world, workers=4, patience=math.inf)).start
    running = [Running(run.id, run.user, run.project, run.demand, run.since) for run in begun if run.id in started]
    return running, world


def held(runs: list[Running] | list[Waiting]) -> Demand:
    total = NOTHING
    for run in runs:
        total = total.plus(run.demand)
    return total


def after(waiting: list[Waiting], running: list[Running], decision: Decision) -> list[Running]:
    """Return what is running after the decision was applied."""
    by_id = {run.id: run for run in waiting}
    fresh = [by_id[name] for name in decision.start]
    return [*running, *(Running(run.id, run.user, run.project, run.demand, 100.0) for run in fresh)]


def may_start(run: Waiting, running: list[Running], world: World, started: int) -> bool:
    """Return whether machine, quota and workers have room for one more."""
    allowed = world.projects.get(run.project, Quota())
    same = [other for other in running if other.project == run.project]
    mine = held(same).plus(run.demand)
    within = (
        (allowed.concurrent_runs is None or len(same) < allowed.concurrent_runs)
        and (allowed.cpus is None or mine.cpus <= allowed.cpus + ROUNDING)
        and (allowed.gpus is None or mine.gpus <= allowed.gpus + ROUNDING)
    )
    room = world.machine.minus(world.held_by_others).minus(held(running))
    return within and run.demand.fits(room) and started < world.workers


@given(queues(), worlds())
@settings(max_examples=100, deadline=None)
def test_machine_quotas_and_workers_are_never_exceeded(
    waiting: list[Waiting], there: tuple[list[Running], World]
) -> None:
    running, world = there
    decision = decide(waiting, running, world)
    then = after(waiting, running, decision)
    assert len(decision.start) == len(set(decision.start)) <= world.workers
    assert not decision.start or held(then).plus(world.held_by_others).fits(world.machine)
    for project in {run.project for run in then if run.id in decision.start}:
        allowed = world.projects.get(project, Quota())
        mine = [run for run in then if run.project == project]
        assert allowed.concurrent_runs is None or len(mine) <= allowed.concurrent_runs
        assert allowed.cpus is None or held(mine).cpus <= allowed.cpus + ROUNDING
        assert allowed.gpus is None or held(mine).gpus <= allowed.gpus + ROUNDING


@given(queues(), worlds())
@settings(max_examples=100, deadline=None)
def test_waiting_runs_have_a_reason_and_runs_that_fit_are_started(
    waiting: list[Waiting], there: tuple[list[Running], World]
) -> None:
    running, world = there
    decision = decide(waiting, running, world)
    assert decision.waiting_for.keys() == {run.id for run in waiting} - set(decision.start)
    assert all(decision.waiting_for.values())
    then = after(waiting, running, decision)
    left = [run for run in waiting if run.id in decision.waiting_for]
    fitting = [run for run in left if may_start(run, then, world, len(decision.start))]
    if decision.kept_for is None:
        assert not fitting, "work-conserving"
        return
    kept = next(run for run in waiting if run.id == decision.kept_for)
    from_then = [run for run in then if run.since >= kept.since + world.patience]
    free = world.machine.minus(world.held_by_others)
    for run in fitting:
        assert not held(from_then).plus(run.demand).plus(kept.demand).fits(free), "only what would delay it waits"


@given(queues(), worlds(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_preemptible_runs_make_room_for_others_and_for_nobody_else(
    waiting: list[Waiting], there: tuple[list[Running], World], chance: Random
) -> None:
    running, world = there
    running = [replace(run, preemptible=chance.random() < 0.6, leaving=chance.random() < 0.2) for run in running]
    waiting = [replace(run, preemptible=chance.random() < 0.4) for run in waiting]
    decision = decide(waiting, running, world)
    then = after(waiting, running, decision)
    served = [run for run in waiting if decision.waiting_for.get(run.id) == PREEMPTED]
    assert len(decision.start) <= world.workers, "a worker that is stopped is free later"
    assert not decision.start or held(then).plus(world.held_by_others).fits(world.machine), "so is its room"
    assert set(decision.stop) <= {run.id for run in running if run.preemptible and not run.leaving}
    assert len(decision.stop) == len(set(decision.stop)) and not (decision.stop and not served)
    assert not [run for run in served if run.preemptible]
    left = [run for run in then if run.id not in decision.stop and not (run.preemptible and run.leaving)]
    if served:
        assert held(left).plus(held(served)).plus(world.held_by_others).fits(world.machine)
    for run in served:
        others = [one for one in served if one is not run]
        for name in decision.stop if not others else ():
            kept = held([one for one in running if one.id == name])
            room = world.machine.minus(world.held_by_others).minus(held(left)).minus(kept)
            assert not run.demand.fits(room) or world.workers < 1, "no more than needed is stopped"
    again = decide(waiting, [replace(run, leaving=run.leaving or run.id in decision.stop) for run in then], world)
    assert not again.stop or decision.start, "those that leave are waited for"


@given(queues(), st.integers(1, 8))
@settings(max_examples=80, deadline=None)
def test_the_runs_of_one_user_start_by_priority_and_then_age(waiting: list[Waiting], room: int) -> None:
    waiting = [replace(run, demand=Demand(1.0), project="p1") for run in waiting]
    started = set(decide(waiting, [], World(machine=Demand(float(room)), workers=99, now=100.0)).start)
    for run in waiting:
        if run.id not in started:
            continue
        for other in waiting:
            if other.user == run.user and other.id not in started:
                assert (-run.priority, run.since) <= (-other.priority, other.since)


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.integers(1, 40), st.data())
@settings(max_examples=80, deadline=None)
def test_users_get_equal_shares_whatever_they_queue_with_any_priority(
    counts: list[int], room: int, data: st.DataObject
) -> None:
    waiting = [
        Waiting(f"{user}{number}", user, "p1", Demand(1.0), float(number), data.draw(st.integers(-100, 100)))
        for user, count in zip(USERS, counts, strict=True)
        for number in range(count)
    ]
    decision = decide(waiting, [], World(machine=Demand(float(room)), workers=99, now=100.0))
    given_ = Counter(name[:3] for name in decision.start)
    short = [user for user, count in zip(USERS, counts, strict=True) if given_[user] < count]
    for user in short:  # users who want more have no less than others, except for one run that can't be split
        assert all(given_[user] >= given_[other] - 1 for other in USERS)


def test_a_project_of_twice_the_weight_gets_twice_the_share() -> None:
    waiting = [
        Waiting(f"{user}{number}", user, project, Demand(1.0), float(number))
        for user, project in (("ada", "p1"), ("bob", "p2"))
        for number in range(30)
    ]
    projects = {"p2": Quota(weight=2.0)}
    decision = decide(waiting, [], World(machine=Demand(12.0), workers=99, now=100.0, projects=projects))
    assert Counter(name[:3] for name in decision.start) == {"ada": 4, "bob": 8}


def test_shares_are_of_the_dominant_resource() -> None:
    running = [Running("a", "ada", "p1", Demand(1.0, 3000.0), 0.0), Running("b", "bob", "p2", Demand(2.0, 100.0), 0.0)]
    waiting = [Waiting("a2", "ada", "p1", Demand(1.0), 1.0), Waiting("b2", "bob", "p2", Demand(1.0), 2.0)]
    world = World(machine=Demand(8.0, 4000.0), workers=1, now=100.0)
    assert decide(waiting, running, world).start == ["b2"], "ada has three quarters of the memory"


@given(
    st.lists(st.tuples(st.sampled_from(USERS), st.integers(1, 20)), min_size=40, max_size=120),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_large_run_among_a_stream_of_small_ones_starts_in_bounded_time(
    stream: list[tuple[str, int]], width: int, same_user: bool
) -> None:
    """A new small run arrives each second; each takes up to 20 seconds; the large one needs all of the machine."""
    machine, patience, longest = Demand(3.0), 30.0, 20
    waiting = [Waiting("large", "ada" if same_user else "eve", "p1", machine, 0.0)]
    running: list[tuple[Running, float]] = []
    served: dict[str, float] = {}
    for second in range(300):
        moment = float(second)
        running = [(run, end) for run, end in running if end > moment]
        waiting += [
            Waiting(f"s{second}.{number}", stream[(second + number) % len(stream)][0], "p1", Demand(1.0), moment)
            for number in range(width)
        ]
        world = World(machine=machine, workers=99, now=moment, served=served, patience=patience)
        for name in decide(waiting, [run for run, _ in running], world).start:
            if name == "large":
                return
            run = next(run for run in waiting if run.id == name)
            served[run.user] = moment
            seconds = stream[second % len(stream)][1]
            running.append((Running(run.id, run.user, run.project, run.demand, moment), moment + seconds))
            waiting.remove(run)
        waiting = waiting[:60]
        assert moment <= 3 * patience + 3 * longest, "starved"


def test_small_runs_overtake_a_large_one_only_outside_its_reservation() -> None:
    machine = Demand(4.0)
    old = Running("old", "bob", "p1", Demand(3.0), 0.0)
    large = Waiting("large", "ada", "p1", Demand(3.0), 10.0)
    small = [Waiting(name, "bob", "p1", Demand(0.5), 20.0) for name in ("s1", "s2", "s3")]
    young = World(machine=machine, workers=9, now=30.0, patience=30.0)
    assert decide([large, *small], [old], young).start == ["s1", "s2"]
    patient = replace(young, now=50.0)
    decision = decide([large, *small], [old, Running("n", "bob", "p1", Demand(0.5), 45.0)], patient)
    assert decision.start == ["s1"] and decision.kept_for == "large", "4 = 3 for it, and two halves"
    full = [old, *(Running(name, "bob", "p1", Demand(0.5), 45.0) for name in ("n1", "n2"))]
    assert decide([large, *small], full[:2], replace(patient, machine=Demand(3.6))).start == []


@pytest.mark.parametrize(
    ("world", "demand", "reason"),
    [
        pytest.param(
            World(Demand(2.0), 2, 9.0, held_by_others=Demand(2.0)), Demand(2.0), "2 CPUs; 0 of 2 are free", id="cpu"
        ),
        pytest.param(World(Demand(2.0), 0, 9.0), Demand(1.0), WORKER, id="worker"),
        pytest.param(
            World(Demand(2.0), 2, 9.0, projects={"p1": Quota(concurrent_runs=0)}),
            Demand(1.0),
            "the project's 0 concurrent runs",
            id="quota",
        ),
        pytest.param(World(Demand(2.0), 2, 9.0), Demand(4.0), "4 CPUs: more than this machine has", id="never"),
        pytest.param(World(Demand(2.0), 2, 9.0), Demand(1.0, 0, 1.0), "1 GPU: more than this machine has", id="gpu"),
    ],
)
def test_reasons_are_short(world: World, demand: Demand, reason: str) -> None:
    waiting = [Waiting(name, "ada", "p1", demand, 1.0) for name in ("a", "b")]
    assert decide(waiting, [], world).waiting_for == {"a": reason, "b": TURN}


def test_a_run_too_large_for_the_machine_reserves_nothing() -> None:
    waiting = [Waiting("huge", "ada", "p1", Demand(9.0), 0.0), Waiting("small", "bob", "p1", Demand(1.0), 50.0)]
    decision = decide(waiting, [], World(Demand(2.0), 2, 100.0))
    assert decision.start == ["small"] and decision.kept_for is None


def test_ten_thousand_queued_runs_are_decided_fast() -> None:
    import time

    waiting = [
        Waiting(f"{n}", f"u{n % 50}", f"p{n % 50}", Demand(1.0, 100.0 * (n % 7)), n / 100) for n in range(10_000)
    ]
    began = time.process_time()
    decision = decide(waiting, [], World(Demand(8.0, 4000.0), 8, 1000.0))
    assert decision.start and time.process_time() - began < 1.5
