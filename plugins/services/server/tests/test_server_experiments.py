"""Experiments: a matrix of runs, all created or none."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from mleredux._core.store import Run, RunStore
from mleredux.models import RunSpec
from mleredux.plugin.artifact import Cause, Report, State
from mleredux.plugin.experiment import Plan, resolved
from mleredux_experiments.execution.sequence import spent_alpha
from mleredux_server.database.tables import Experiment, Idempotency, Job, Project, RunRow, now
from mleredux_server.runs.creation import drop_uncreated
from mleredux_server.runs.summary import facts_of
from mleredux_server.scheduler.budgets import apply_sequential_rule, charge, stop_queued
from mleredux_server.scheduler.jobs import end_run
from mleredux_support.server_local import LocalServer
from sqlalchemy import func, select, update

ASKED = {"agents": ["dummy"], "sandbox": "docker"}


@pytest.fixture(scope="module")
def ann(local: LocalServer) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('ann')}"}, timeout=60)


def rows_of(local: LocalServer) -> tuple[int, int, int]:
    """Count experiments, runs and jobs."""
    with local.service.database.reading() as session:
        experiments, runs, jobs = (
            session.scalar(select(func.count()).select_from(table)) or 0 for table in (Experiment, RunRow, Job)
        )
        return experiments, runs, jobs


def set_quota(local: LocalServer, project: str, **quota: Any) -> None:
    with local.service.database.writing() as session:
        row = session.scalars(select(Project).where(Project.name == project)).one()
        row.quota = {**row.quota, **quota}


def test_each_task_is_run_with_each_agent_and_each_seed_once(local: LocalServer, ann: httpx.Client) -> None:
    made = ann.post(
        "/v1/experiments",
        json={**ASKED, "name": "first", "tasks": ["wine"], "sets": ["starter"], "seeds": [0, 1, 1], "priority": 5},
    )
    assert made.status_code == 201, made.text
    experiment = made.json()
    members = {task["id"] for task in ann.get("/v1/tasks", params={"set": "starter"}).json()["items"]}
    pairs = [(run["task"], run["seed"]) for run in experiment["runs"]]
    assert sorted(pairs) == sorted((task, seed) for task in members for seed in (0, 1))
    assert experiment["counts"] == {"queued": len(pairs)}
    assert {run["experiment"] for run in experiment["runs"]} == {experiment["id"]}
    assert {run["priority"] for run in experiment["runs"]} == {5}
    assert made.headers["Location"] == f"/v1/experiments/{experiment['id']}"
    assert ann.get(made.headers["Location"]).json() == experiment
    assert set(RunStore(local.service.store.path).ids()) >= {run["id"] for run in experiment["runs"]}
    listed = ann.get("/v1/runs", params={"experiment": experiment["id"], "limit": 500}).json()["items"]
    assert {run["id"] for run in listed} == {run["id"] for run in experiment["runs"]}


def test_a_plan_is_expanded_as_it_is_locally(local: LocalServer, ann: httpx.Client) -> None:
    arm = {"agent": "dummy", "sandbox": "docker", "contexts": {"*": "Be brief."}}
    arms = {"v1": {**arm, "grid": {"limits": {"time_limit": ["1m", "2m"]}}}, "v2": {**arm, "agent": "baseline"}}
    design = {"name": "first", "tasks": ["digits", "set:starter"], "seeds": [0, 1]}
    plan = {"experiment": design, "limits": {"memory_mb": "2g"}, "arms": arms}
    answered = ann.post("/v1/experiments", json={"plan": plan})
    assert answered.status_code == 201, answered.text
    made = answered.json()
    cells = resolved(Plan.model_validate(plan).request, local.service.catalogue).cells()
    assert {(run["arm"], run["task"], run["seed"]) for run in made["runs"]} == set(cells)
    assert len(made["runs"]) == len(cells)
    limits = {(run["arm"], run["limits"]["time_limit"], run["limits"]["memory_mb"]) for run in made["runs"]}
    assert ("v1:time_limit=2m", 120, 2048) in limits and len(limits) == 3
    assert made["name"] == "first" and made["plan"]["arms"]["v2"]["agent"] == "baseline"
    spec = Run(local.service.store.path / made["runs"][0]["id"]).spec
    assert (spec.experiment, spec.context) == (made["id"], "Be brief.") and spec.arm == made["runs"][0]["arm"]


def test_an_experiment_is_analysed_by_its_plan(local: LocalServer, ann: httpx.Client) -> None:
    arms = {name: {"agent": "dummy", "sandbox": "docker"} for name in ("v1", "v2")}
    plan = {"experiment": {"name": "first", "tasks": ["wine", "digits"], "primary": "valid"}, "arms": arms}
    made = ann.post("/v1/experiments", json={"plan": plan}).json()
    url = f"/v1/experiments/{made['id']}/analysis"
    assert (ann.get(url).status_code, ann.get("/v1/experiments/none/analysis").status_code) == (422, 404)
    for run in made["runs"]:
        folder = Run(local.service.store.path / run["id"])
        for state in (State.PREPARING, State.PRODUCING):
            folder.enter(state)
        folder.enter(State.FAILED, cause=Cause.AGENT_CRASHED, message="It crashed.")
    with local.service.database.writing() as session:
        ids = [run["id"] for run in made["runs"]]
        session.execute(update(RunRow).where(RunRow.id.in_(ids)).values(status="failed", ended_at=now()))
    found = ann.get(url)
    assert found.status_code == 200, found.text
    told = found.json()
    assert (told["measure"], told["baseline"], [arm["runs"] for arm in told["arms"]]) == ("valid", "v1", [2, 2])
    assert ann.get(url, params={"measure": "nonsense"}).status_code == 422


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"arms": {"v1": {"agent": "dummy", "context": "/etc/passwd"}}}, 422),
        ({"arms": {"v1": {"agent": "dummy", "image": "python"}}}, 422),
        ({"arms": {"v1": {"agent": "dummy", "grid": {"limits": {"gpu": [1]}}}}}, 422),
        ({"arms": {"v1": {"agent": "dummy", "limits": {"cpus": 4000}}}}, 422),
        ({"experiment": {"name": "first", "tasks": ["digits"], "seeds": [0, -1]}}, 422),
        ({"arms": {"v1": {"agent": "no-such-agent"}}}, 404),
        ({"arms": {"v1": {"agent": "human:ada"}}}, 403),
        ({"arms": {"v1": {"agent": "dummy", "grid": {"seed": [*range(40)], "model": [*range(40)]}}}}, 422),
        ({"experiment": {"name": "big", "tasks": ["digits"], "seeds": [*range(6000)]}}, 413),
    ],
)
def test_an_impossible_plan_creates_nothing(
    local: LocalServer, ann: httpx.Client, changed: dict[str, Any], status: int
) -> None:
    before = rows_of(local)
    plan = {"experiment": {"name": "first", "tasks": ["digits"]}, "arms": {"v1": {"agent": "dummy"}}, **changed}
    answered = ann.post("/v1/experiments", json={"plan": plan})
    assert answered.status_code == status, answered.text
    assert ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"], "plan": plan}).status_code == 422
    assert rows_of(local) == before


def test_the_list_counts_runs_without_listing_them(local: LocalServer, ann: httpx.Client) -> None:
    ids = [ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"]}).json()["id"] for _ in range(3)]
    first = ann.get("/v1/experiments", params={"limit": 2}).json()
    second = ann.get("/v1/experiments", params={"limit": 2, "cursor": first["next"]}).json()
    assert [row["id"] for row in first["items"] + second["items"]][:3] == ids[::-1]
    assert first["items"][0]["counts"] == {"queued": 1}
    assert "runs" not in first["items"][0]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"tasks": ["digits", "no-such-task"]}, 404),
        ({"tasks": ["digits"], "sets": ["no-such-set"]}, 404),
        ({"tasks": ["digits"], "agents": ["dummy", "no-such-agent"]}, 404),
        ({"tasks": []}, 422),
        ({"tasks": ["digits"], "agents": []}, 422),
        ({"tasks": ["digits"], "options": {"nonsense": 1}}, 422),
        ({"tasks": ["digits"], "seeds": [0, -1]}, 422),
        ({"tasks": ["digits"], "seeds": [2**32]}, 422),
        ({"tasks": ["digits"], "limits": {"cpus": 4000}}, 422),
        (
            {
                "tasks": ["digits", "wine", "diabetes", "breast-cancer", "cell-nuclei", "cv@wine"],
                "seeds": [*range(1000)],
            },
            413,
        ),
        ({"tasks": ["digits"], "seeds": [*range(1000)], "context": "x" * 60_000}, 413),
    ],
)
def test_if_one_run_is_impossible_none_is_created(
    local: LocalServer, ann: httpx.Client, asked: dict[str, Any], status: int
) -> None:
    before = rows_of(local)
    answered = ann.post("/v1/experiments", json={**ASKED, **asked})
    assert answered.status_code == status, answered.text
    assert answered.json()["detail"]
    assert rows_of(local) == before


def test_the_quota_applies_to_all_runs_together(local: LocalServer, ann: httpx.Client) -> None:
    waiting = ann.get("/v1/me").json()["projects"][0]["usage"]["queued_runs"]
    set_quota(local, "ann", queued_runs=waiting + 3)
    before = rows_of(local)
    refused = ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"], "seeds": [1, 2, 3, 4]})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:mleredux:problem:quota-exceeded")
    assert rows_of(local) == before
    assert ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"], "seeds": [1, 2, 3]}).status_code == 201
    set_quota(local, "ann", queued_runs=None)


def test_a_directory_that_can_not_be_created_leaves_nothing(
    local: LocalServer, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, made, create = rows_of(local), [], Run.create

    def failing(path: Path, spec: RunSpec) -> Run:
        if len(made) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        made.append(path)
        return create(path, spec)

    monkeypatch.setattr(Run, "create", failing)
    asked, key = {**ASKED, "tasks": ["digits"], "seeds": [1, 2, 3]}, {"Idempotency-Key": "full disk"}
    with structlog.testing.capture_logs() as told:
        answered = ann.post("/v1/experiments", json=asked, headers=key)
    assert "request failed" in [line["event"] for line in told]
    assert (answered.status_code, answered.json()["type"]) == (507, "urn:mleredux:problem:no-space"), answered.text
    assert rows_of(local) == before
    assert len(made) == 2
    assert not [path for path in made if path.exists()]
    with local.service.database.reading() as session:
        assert session.scalars(select(Idempotency.key)).all() == []


def test_runs_partially_created_before_a_kill_are_removed_with_their_experiment(
    local: LocalServer, ann: httpx.Client
) -> None:
    before = rows_of(local)
    made = ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"], "seeds": [1, 2]}).json()
    ids = [run["id"] for run in made["runs"]]
    with local.service.database.writing() as session:
        session.execute(update(Job).where(Job.id.in_(ids)).values(state="creating"))
    drop_uncreated(local.service, ids)
    assert rows_of(local) == before


def test_users_can_not_see_others_experiments(local: LocalServer, ann: httpx.Client) -> None:
    made = ann.post("/v1/experiments", json={**ASKED, "tasks": ["digits"]}).json()
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('bob')}"}, timeout=60) as bob:
        assert bob.get(f"/v1/experiments/{made['id']}").status_code == 404
        assert bob.get("/v1/experiments").json()["items"] == []
        assert bob.get("/v1/experiments", params={"project": "ann"}).status_code == 404
        assert bob.get("/v1/runs", params={"experiment": made["id"]}).json()["items"] == []


def test_a_repeated_large_matrix_returns_completely_under_its_key(local: LocalServer, ann: httpx.Client) -> None:
    asked = {**ASKED, "tasks": ["digits"], "seeds": [*range(60)], "labels": {"big": "yes"}}
    first = ann.post("/v1/experiments", json=asked, headers={"Idempotency-Key": "big"})
    again = ann.post("/v1/experiments", json=asked, headers={"Idempotency-Key": "big"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert again.headers["Location"] == first.headers["Location"]
    with local.service.database.reading() as session:
        kept = session.scalars(select(Idempotency.body).where(Idempotency.key == "big")).one()
    assert kept is not None
    assert len(kept) < len(first.content) / 4


def end(local: LocalServer, run_id: str, cause: Cause | None, seconds: float = 60.0) -> Run:
    """End a run as its agent or its environment would, without its job."""
    run = Run(local.service.store.path / run_id)
    run.enter(State.PREPARING)
    run.enter(State.PRODUCING)
    outcome = {"exit_code": 1, "seconds": seconds, "cause": Cause.AGENT_CRASHED}
    run.emit("stage", stage="running", status="finished", seconds=seconds, outcome=outcome)
    run.enter(State.FAILED, cause=cause, message="It ended.")
    return run


def test_an_experiment_is_extended_and_what_broke_is_run_again(local: LocalServer, ann: httpx.Client) -> None:
    arms = {name: {"agent": "dummy", "sandbox": "docker"} for name in ("v1", "v2")}
    plan = {"experiment": {"name": "growing", "tasks": ["wine"], "seeds": [0]}, "arms": arms}
    made = ann.post("/v1/experiments", json={"plan": plan}).json()
    url, (first, second) = f"/v1/experiments/{made['id']}", made["runs"]
    for run, cause in ((first, Cause.ENVIRONMENT_BROKE), (second, Cause.AGENT_CRASHED)):
        ended = end(local, run["id"], cause)
        with local.service.database.writing() as session:
            end_run(session, run["id"], facts_of(ended), 1)
    key = {"Idempotency-Key": "once"}
    larger = [ann.post(f"{url}/extend", json={"tasks": ["digits"], "seeds": [3]}, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in larger] == [201, 201], larger[0].text
    shown = ann.get(url).json()
    cells = {(run["arm"], run["task"], run["seed"]) for run in shown["runs"]}
    assert cells == {(arm, task, seed) for arm in arms for task in ("wine", "digits") for seed in (0, 3)}
    assert len(shown["runs"]) == len(larger[1].json()["runs"]) == 8
    assert shown["plan"]["experiment"]["seeds"] == [0, 3]
    assert [(change["what"], change["results"]) for change in shown["changes"]] == [
        ("Extended by tasks digits and seeds 3.", 2)
    ]
    assert ann.post(f"{url}/extend", json={"seeds": [3]}).status_code == 409
    assert ann.post(f"{url}/extend", json={"tasks": ["nonsense"]}).status_code == 404
    again = ann.post(f"{url}/retry")
    assert again.status_code == 202, again.text
    states = {run["id"]: run["status"] for run in again.json()["runs"]}
    attempts = [
        run["id"] for run in again.json()["runs"] if (run["arm"], run["task"], run["seed"]) == ("v1", "wine", 0)
    ]
    assert "queued" in {states[name] for name in attempts}
    assert states[second["id"]] == "failed"  # the agent's own failure is a result
    assert len(ann.post(f"{url}/retry").json()["runs"]) == len(states)


def test_a_budget_cancels_what_is_queued(local: LocalServer, ann: httpx.Client) -> None:
    design = {"name": "budget", "tasks": ["wine"], "seeds": [0, 1, 2, 3]}
    arms = {"v1": {"agent": "dummy", "sandbox": "docker"}}
    plan = {"experiment": design, "arms": arms, "stop": {"max_hours": 1.5}}
    made = ann.post("/v1/experiments", json={"plan": plan}).json()
    url, runs = f"/v1/experiments/{made['id']}", [run["id"] for run in made["runs"]]
    for run_id, over in ((runs[0], None), (runs[1], made["id"])):
        run = end(local, run_id, Cause.AGENT_CRASHED, seconds=3600.0)
        with local.service.database.writing() as session:
            assert charge(session, run) == over
            end_run(session, run_id, facts_of(run), 1)
            assert charge(session, run) == over  # the caller may repeat this; `spent` shows that each run counts once
    stop_queued(local.service, made["id"])
    shown = ann.get(url).json()
    assert shown["counts"] == {"failed": 2, "cancelled": 2}
    assert (shown["spent"]["hours"], shown["stopped"]) == (
        2.0,
        "The budget of 1.5 hours is used up: the runs took 2.00.",
    )
    assert {run["message"] for run in shown["runs"] if run["status"] == "cancelled"} == {shown["stopped"]}


def test_an_attempt_that_is_resumed_is_charged_once(local: LocalServer, ann: httpx.Client) -> None:
    arms = {"v1": {"agent": "dummy", "sandbox": "docker"}}
    plan = {"experiment": {"name": "once", "tasks": ["wine"]}, "arms": arms, "stop": {"max_hours": 9}}
    made = ann.post("/v1/experiments", json={"plan": plan}).json()
    url, run_id = f"/v1/experiments/{made['id']}", made["runs"][0]["id"]
    for cause in (Cause.ENVIRONMENT_BROKE, Cause.ENVIRONMENT_BROKE, None):  # broken after the agent ended, twice
        run = end(local, run_id, cause, seconds=3600.0)
        with local.service.database.writing() as session:
            charge(session, run)
            end_run(session, run_id, facts_of(run), 1)
        assert ann.get(url).json()["spent"] == {"cost_usd": 0.0, "hours": 1.0}
        if cause is not None:
            assert ann.post(f"{url}/retry").json()["counts"] == {"queued": 1}


STARTERS = ("breast-cancer", "cell-nuclei", "diabetes", "digits", "wine")


def test_the_sequential_rule_cancels_what_is_not_needed(local: LocalServer, ann: httpx.Client) -> None:
    design = {"name": "sequence", "tasks": STARTERS, "seeds": [0, 1, 2], "primary": "made", "alpha": 0.5}
    arms = {name: {"agent": "dummy", "sandbox": "docker"} for name in ("v1", "v2")}
    plan = {"experiment": design, "arms": arms, "stop": {"rule": "sequential"}}
    made = ann.post("/v1/experiments", json={"plan": plan}).json()
    told = []
    for run in sorted(made["runs"], key=lambda run: run["seed"]):
        if run["seed"] < 2:
            ended = end(local, run["id"], Cause.AGENT_CRASHED)
            report = {"competition_id": run["task"], "score": None, "submission_exists": run["arm"] == "v2"}
            report |= {"valid_submission": False, "is_lower_better": False, "created_at": str(now()), "metric": "rmse"}
            ended.write_report(Report.model_validate({**report, "submission_path": "", "task_version": "1"}))
            with local.service.database.writing() as session:
                end_run(session, run["id"], facts_of(ended), 1)
            told.append(apply_sequential_rule(local.service, made["id"]))
    assert told[:-1] == [None] * 19  # one seed is too little; the second is complete with its last run
    assert told[-1] == "Decided after 2 seeds at level 0.076: v2 +100 points, better."
    stop_queued(local.service, made["id"])
    shown = ann.get(f"/v1/experiments/{made['id']}").json()
    assert (shown["stopped"], shown["counts"]) == (told[-1], {"failed": 20, "cancelled": 10})
    analysis = ann.get(f"/v1/experiments/{made['id']}/analysis").json()
    assert analysis["alpha"] == pytest.approx(spent_alpha(0.5, 2))


def test_a_plan_is_checked_by_runs_that_the_caller_may_see(local: LocalServer, ann: httpx.Client) -> None:
    arms = {name: {"agent": "baseline", "sandbox": "docker", "limits": {"time_limit": "1h"}} for name in ("v1", "v2")}
    plan = {"experiment": {"name": "checked", "tasks": ["set:starter"], "seeds": [0, 1]}, "arms": arms}
    before, asked = rows_of(local), {"plan": plan}
    first = ann.post("/v1/experiments/check", json=asked)
    assert first.status_code == 200, first.text
    told = first.json()
    assert (told["runs"], told["past"], told["hours"], told["most_hours"]) == (20, 0, None, 20.0)
    assert (told["tasks"], told["arms"][1]["limits"]) == (sorted(STARTERS), "time_limit=3600")
    assert rows_of(local) == before
    done = ann.post("/v1/runs", json={"task": "wine", "agent": "baseline", "sandbox": "docker"}).json()["id"]
    ended = end(local, done, Cause.AGENT_CRASHED, seconds=1800.0)
    with local.service.database.writing() as session:
        end_run(session, done, facts_of(ended), 1)
    again = ann.post("/v1/experiments/check", json=asked).json()
    assert (again["past"], again["hours"]["mean"]) == (1, pytest.approx(10.0))
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('eve')}"}, timeout=60) as eve:
        assert eve.post("/v1/experiments/check", json=asked).json()["past"] == 0
    wrong = {**plan, "experiment": {**plan["experiment"], "primary": "medals"}}
    refused = ann.post("/v1/experiments/check", json={"plan": wrong})
    assert refused.status_code == 422 and "no measure 'medals'" in refused.json()["detail"]
    assert ann.post("/v1/experiments/check", json={**ASKED, "tasks": ["wine"]}).status_code == 422


def test_a_value_where_a_list_belongs_is_refused_without_names_of_classes(ann: httpx.Client) -> None:
    plan = {"experiment": {"name": "first", "tasks": ["digits"], "seeds": 1}, "arms": {"v1": {"agent": "dummy"}}}
    refused = ann.post("/v1/experiments", json={"plan": plan})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "plan.experiment.seeds: Input should be a list."
