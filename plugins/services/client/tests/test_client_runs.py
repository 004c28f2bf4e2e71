"""Runs, experiments, lists: the nouns, before a service that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import mleredux_client as sdk
import pytest
from mleredux_client import AsyncClient, Client, Run

TIME = "2026-11-21T12:00:00Z"
EVENTS = [
    (number, "state", {"seq": number, "time": TIME, "type": "state", "data": {"state": "läuft 😀", "n": number}})
    for number in range(12)
]
LOG = "".join(f"epoch {number}: größer 😀\n" for number in range(40))
REPORT = {
    "competition_id": "digits",
    "score": 0.98,
    "gold_medal": True,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": TIME,
    "submission_path": "submission.csv",
    "task_version": "1",
    "metric": "accuracy",
}
RunOf = Callable[..., Run]


def test_a_run_is_asked_for_with_what_was_given_and_nothing_else(fake: Any, client: Client) -> None:
    fake.serve("POST /v1/runs", fake.run_document(status="queued", waiting_for="two runs before it"), 201)
    run = client.run("digits", time_limit=60, limits={"cpus": 1}, labels={"sweep": 3}, options={"folds": 3})
    assert fake.asked[0].json == {
        "task": "digits",
        "agent": "baseline",
        "seed": 0,
        "limits": {"cpus": 1, "time_limit": 60},
        "labels": {"sweep": "3"},
        "options": {"folds": 3},
    }
    assert (run.id, run.state, run.state.final, run.describe()) == (
        "run-1",
        "queued",
        False,
        "queued: two runs before it",
    )
    assert repr(run) == "<Run run-1 digits baseline queued: two runs before it>"


def test_runs_belong_to_the_clients_project_unless_another_is_named(fake: Any) -> None:
    fake.serve("POST /v1/runs", fake.run_document(), 201)
    with Client(fake.url, "t", project="ours") as client:
        client.run("digits")
        client.run("digits", project="theirs")
    assert [asked.json["project"] for asked in fake.asked] == ["ours", "theirs"]


def test_waiting_tells_each_change_once_and_sends_nothing_again_that_did_not_change(
    fake: Any, client: Client, pauses: list[float]
) -> None:
    states = [("queued", '"1"'), ("running", '"2"'), ("running", '"2"'), ("running", '"2"'), ("done", '"3"')]
    answers = iter(states)

    def route(asked: Any) -> Any:
        status, tag = next(answers)
        if asked.headers.get("If-None-Match") == tag:
            return fake.answer(304, b"", {"ETag": tag})
        return fake.said(fake.run_document(status=status, score=0.98, medal="gold"), ETag=tag)

    fake.serve("POST /v1/runs", fake.run_document(status="queued"), 201)
    fake.routes["GET /v1/runs/run-1"] = route
    told: list[str] = []
    run = client.run("digits").wait(progress=lambda _run, text: told.append(text))
    assert told == [
        "queued",
        "queued, score 0.98, gold medal",
        *[f"{s}, score 0.98, gold medal" for s in ("running", "done")],
    ]
    assert (run.status, run.score, run.medal, len(fake.asked)) == ("done", 0.98, "gold", 6)
    assert all(later > earlier for earlier, later in pairwise(pauses)), "intervals grow"


def test_waiting_ends_at_its_time_and_the_run_goes_on(fake: Any) -> None:
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="running"))
    with Client(fake.url, "t") as client:
        run = client.get_run("run-1")
        with pytest.raises(TimeoutError, match=r"Run run-1 did not finish within 0.2 seconds. It continues"):
            run.wait(timeout=0.2)
        with pytest.raises(sdk.WaitTimeout):
            run.wait(timeout=0)
    assert {asked.method for asked in fake.asked} == {"GET"}


def test_a_service_that_restarts_does_not_end_the_waiting(fake: Any, run_of: RunOf) -> None:
    run = run_of(status="running")
    fake.fail("GET /v1/runs/run-1", fake.broken, fake.problem(503), fake.broken)
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="failed", cause="out_of_memory", message="Too much."))
    assert run.wait().describe() == "failed: Too much."
    assert (run.cause, run.message) == ("out_of_memory", "Too much.")


def test_what_a_run_does_not_have_yet_is_none(fake: Any, run_of: RunOf) -> None:
    run = run_of(status="running")
    for name in ("report", "rollout", "scores", "resources"):
        fake.fail(f"GET /v1/runs/run-1/{name}", fake.problem(404, "not-yet"))
    assert (run.report, run.rollout, list(run.scores), list(run.resources())) == (None, None, [], [])
    with pytest.raises(sdk.NotFound):
        run.report


def test_what_a_run_has_is_typed(fake: Any, run_of: RunOf) -> None:
    run = run_of(report=REPORT)
    version = {"number": 1, "time": TIME, "seconds": 3.5, "size": 9, "score": 0.5, "valid": True}
    step = {"step_id": 1, "source": "agent", "message": [{"type": "text", "text": "hm"}]}
    rollout = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": [step]}
    fake.serve("GET /v1/runs/run-1/scores", {"items": [version]})
    fake.serve("GET /v1/runs/run-1/resources", {"items": [{"seconds": 1.0, "memory_mb": 30.0}]})
    fake.serve("GET /v1/runs/run-1/rollout", rollout)
    fake.serve("GET /v1/runs/run-1/logs", {"items": [{"name": "agent.log", "size": 3}], "next": None})
    assert run.report is not None and (run.report.medal, fake.times("GET /v1/runs/run-1/report")) == ("gold", 0)
    assert (run.scores[0].score, run.resources()[0].memory_mb) == (0.5, 30.0)
    assert run.rollout is not None and run.rollout.steps[0].message[0].text == "hm"  # type: ignore[union-attr]
    assert [log.name for log in run.log_files()] == ["agent.log"]


def test_runs_are_cancelled_retried_and_deleted(fake: Any, run_of: RunOf) -> None:
    run = run_of(status="running")
    fake.serve("POST /v1/runs/run-1/cancel", fake.run_document(status="running"), 202)
    assert run.cancel() is run
    fake.serve("POST /v1/runs/run-1/retry", fake.run_document(status="queued"), 202)
    assert run.retry() is run and run.status == "queued"
    fake.serve("POST /v1/runs/run-1/retry", fake.run_document("run-2", "queued", retry_of="run-1"), 201)
    again = run.retry()
    assert (again.id, again.record.retry_of, run.id) == ("run-2", "run-1", "run-1")
    fake.routes["DELETE /v1/runs/run-1"] = lambda _asked: fake.answer(204)
    run.delete()


def paged(fake: Any, total: int) -> Callable[[Any], Any]:
    def route(asked: Any) -> Any:
        begin, limit = int(asked.query.get("cursor", ["0"])[0]), int(asked.query["limit"][0])
        end = min(begin + limit, total)
        items = [fake.run_document(f"run-{number}", labels={"n": str(number)}) for number in range(begin, end)]
        return fake.said({"items": items, "next": str(end) if end < total else None})

    return route


def test_lists_are_fetched_as_they_are_read(fake: Any, client: Client) -> None:
    fake.routes["GET /v1/runs"] = paged(fake, 250)
    runs = client.runs(status=["done", "failed"], labels={"sweep": "3"}, created_after=datetime(2026, 1, 2, tzinfo=UTC))
    assert not fake.asked
    assert next(iter(runs)).id == "run-0" and len(fake.asked) == 1
    assert [run.id for run in runs] == [f"run-{number}" for number in range(250)]
    assert len(fake.asked) == 4
    asked = fake.asked[-1].query
    assert asked == {
        "status": ["done", "failed"],
        "label": ["sweep:3"],
        "created_after": ["2026-01-02T00:00:00+00:00"],
        "limit": ["100"],
        "cursor": ["200"],
    }
    assert len(runs.list(limit=7)) == 7 and len(runs.list(limit=0)) == 0
    assert (first := runs.first()) is not None and first.id == "run-0" and fake.asked[-1].query["limit"] == ["1"]
    frame = client.runs().to_dataframe()
    assert frame.shape[0] == 250 and frame["label.n"].tolist()[-1] == "249"


def test_an_empty_list_has_the_columns_all_the_same(fake: Any, client: Client) -> None:
    fake.serve("GET /v1/runs", {"items": [], "next": None})
    frame = client.runs().to_dataframe()
    assert len(frame) == 0 and {"id", "score", "seconds"} <= set(frame.columns)
    assert client.runs().first() is None


def test_pages_that_lead_in_a_circle_are_noticed(fake: Any, client: Client) -> None:
    fake.serve("GET /v1/tasks", {"items": [{"id": "digits"}], "next": "same"})
    with pytest.raises(sdk.UnexpectedAnswer, match="loop"):
        list(client.tasks())


@pytest.mark.parametrize("document", [[], {"items": 3}, {"runs": []}, "x"])
def test_what_is_no_page_is_an_error(fake: Any, client: Client, document: Any) -> None:
    fake.serve("GET /v1/agents", document)
    with pytest.raises(sdk.UnexpectedAnswer, match="not a page"):
        list(client.agents())


def test_an_experiment_is_one_request_and_one_table(fake: Any, client: Client) -> None:
    def experiment(status: str) -> dict[str, Any]:
        ended = {"started_at": TIME, "ended_at": "2026-11-21T12:00:12.5Z", "seconds": 9.5} if status == "done" else {}
        runs = [fake.run_document(f"run-{n}", status, seed=n, score=0.5 + n, options={"k": n}, **ended) for n in (0, 1)]
        return {"id": "exp-1", "name": "seeds", "counts": {status: 2}, "runs": runs}

    fake.serve("POST /v1/experiments", experiment("queued"), 201)
    fake.serve("GET /v1/experiments/exp-1", experiment("done"))
    fake.serve("POST /v1/experiments/exp-1/cancel", experiment("cancelled"), 202)
    made = client.experiment(tasks=["digits"], agents=["baseline"], seeds=range(2), name="seeds", time_limit=9)
    assert fake.asked[0].json == {
        "name": "seeds",
        "tasks": ["digits"],
        "sets": [],
        "agents": ["baseline"],
        "seeds": [0, 1],
        "limits": {"time_limit": 9},
    }
    assert not made.finished and made.size == 2
    told: list[str] = []
    frame = made.wait(progress=lambda _experiment, text: told.append(text)).to_dataframe()
    assert told == ["2 queued", "2 done"]
    assert frame[["seed", "score", "seconds", "option.k"]].values.tolist() == [[0, 0.5, 9.5, 0], [1, 1.5, 9.5, 1]]
    assert [run.id for run in made.runs] == ["run-0", "run-1"]
    assert made.cancel().counts == {"cancelled": 2}
    fake.serve("GET /v1/experiments/exp-1/analysis", {"measure": "gold"})
    fake.serve("POST /v1/experiments/exp-1/extend", experiment("queued"), 201)
    fake.serve("POST /v1/experiments/exp-1/retry", {**experiment("queued"), "stopped": "Enough."}, 202)
    assert made.analysis("gold") == {"measure": "gold"}
    assert made.extend(seeds=range(2)).counts == {"queued": 2}
    assert fake.asked[-1].json == {"tasks": [], "seeds": [0, 1]}
    assert made.retry().record.stopped == "Enough."


def test_one_task_given_as_text_is_not_taken_for_its_letters(client: Client) -> None:
    with pytest.raises(sdk.UsageError, match=r"Write tasks=\['digits'\]"):
        client.experiment(tasks="digits")


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / 'pred"\r\nX: y.csv'
    path.write_bytes(b"id,digit\n" + b"1,2\n" * 50_000)
    return path


def test_predictions_are_graded_and_the_upload_is_whole_at_each_try(
    fake: Any, client: Client, predictions: Path
) -> None:
    document = {"id": "sub-1", "task": "digits", "status": "grading", "created_at": TIME}
    fake.serve("POST /v1/submissions", document, 202)
    fake.fail("POST /v1/submissions", fake.broken, fake.problem(503))
    fake.serve("GET /v1/submissions/sub-1", {**document, "status": "done", "report": REPORT})
    report = client.grade(predictions, "digits")
    assert (report.score, report.medal) == (0.98, "gold")
    tries = [asked for asked in fake.asked if asked.method == "POST"]
    assert len(tries) == 3 and len({asked.headers["Idempotency-Key"] for asked in tries}) == 1
    assert len({asked.body for asked in tries}) == 1, "else the service would take a repeat for something else"
    for asked in tries:
        assert predictions.read_bytes() in asked.body and b'name="task"' in asked.body
        assert asked.headers["Prefer"] == "wait=20"
        assert b"\r\nX: y" not in asked.body


def test_grading_need_not_be_waited_for(fake: Any, client: Client, predictions: Path) -> None:
    fake.serve("POST /v1/submissions", {"id": "sub-1", "task": "digits", "status": "queued"}, 202)
    made = client.grade(predictions, "digits", wait=False)
    assert (made.status, made.report, "Prefer" in fake.asked[0].headers) == ("queued", None, False)
    fake.serve("GET /v1/submissions/sub-1", {"id": "sub-1", "task": "digits", "status": "failed", "message": "Oh."})
    with pytest.raises(sdk.WorkFailed, match=r"Oh\."):
        made.wait().result()


def test_a_file_that_is_not_there_is_said_before_anything_is_sent(client: Client, tmp_path: Path) -> None:
    with pytest.raises(sdk.UsageError, match="There is no file"):
        client.validate(tmp_path / "none.csv", "digits")


def test_validation_and_builds(fake: Any, client: Client, predictions: Path) -> None:
    fake.serve("POST /v1/validations", {"valid": False, "message": "A row is missing."})
    assert client.validate(predictions, "digits").message == "A row is missing."
    build = {"id": "b1", "agent": "repo:https://host/a.git@abc", "status": "building"}
    fake.serve("POST /v1/builds", build, 202)
    made = client.build("repo:https://host/a.git")
    fake.serve("GET /v1/builds/b1", {**build, "status": "ready", "image": "sha256:1", "cached": False})
    assert (made.wait().image, made.agent, made.cached) == ("sha256:1", "repo:https://host/a.git@abc", False)
    fake.serve_file("/v1/builds/b1/log", b"Step 1\n")
    assert "".join(made.log()) == "Step 1\n"
    fake.serve("GET /v1/builds/b1", {**build, "status": "failed", "message": "No such repository."})
    with pytest.raises(sdk.WorkFailed, match=r"No such repository. See `build.log\(\)`."):
        client.build("repo:https://host/a.git", wait=True)


def test_administration(fake: Any, client: Client) -> None:
    user, project = {"id": "u2", "name": "bob", "admin": False}, {"id": "p2", "name": "team"}
    fake.serve("POST /v1/users", user, 201)
    fake.serve("GET /v1/users", {"items": [user], "next": None})
    fake.serve("POST /v1/projects", project, 201)
    fake.serve("PATCH /v1/projects/p2", project)
    fake.routes["PUT /v1/projects/p2/members/u2"] = lambda _asked: fake.answer(204)
    fake.routes["DELETE /v1/*"] = fake.routes["PUT /v1/projects/p2/members/u2"]
    bob = client.users.create("bob")
    assert [one.name for one in client.users] == ["bob"] == [one.name for one in client.users.list()]
    team = client.projects.create("team", quota={"cpus": 2})
    client.projects.update(team, quota=sdk.Quota(cpus=None, gpus=1))
    client.projects.add_member(team, bob, "owner")
    client.projects.remove_member(team, bob)
    client.users.delete(bob)
    sent = [(asked.method, asked.path, asked.json) for asked in fake.asked if asked.body]
    assert sent == [
        ("POST", "/v1/users", {"name": "bob", "admin": False}),
        ("POST", "/v1/projects", {"name": "team", "quota": {"cpus": 2}}),
        ("PATCH", "/v1/projects/p2", {"quota": {"cpus": None, "gpus": 1}}),
        ("PUT", "/v1/projects/p2/members/u2", {"role": "owner"}),
    ]


def test_the_same_without_waiting(fake: Any, pauses: list[float], tmp_path: Path) -> None:
    fake.serve("POST /v1/runs", fake.run_document(status="queued"), 201)
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="done", report=REPORT))
    fake.routes["GET /v1/runs"] = paged(fake, 130)
    fake.serve_stream("/v1/runs/run-1/events", EVENTS, [200, 900])
    fake.serve_file("/v1/runs/run-1/logs/agent.log", LOG.encode(), cut=500)
    (tmp_path / "p.csv").write_text("id,digit\n")
    fake.serve("POST /v1/submissions", {"id": "s", "task": "digits", "status": "done", "report": REPORT}, 201)

    async def all_of_it() -> None:
        async with AsyncClient(fake.url, fake.token) as client:
            run = await client.run("digits")
            events = [event.seq async for event in run.events()]
            assert events == list(range(12))
            await run.wait()
            report = await run.report
            assert report is not None and report.medal == "gold"
            assert "".join([text async for text in run.logs()]) == LOG
            assert len(await client.runs().list()) == 130
            assert len(await client.runs().to_dataframe()) == 130
            assert (await client.grade(tmp_path / "p.csv", "digits")).score == 0.98
            many = await asyncio.gather(*(client.get_run("run-1") for _ in range(20)))
            assert {one.status for one in many} == {"done"}
            with pytest.raises(sdk.NotFound):
                await client.me()
        assert repr(client) == f"AsyncClient({fake.url!r})"

    asyncio.run(all_of_it())
