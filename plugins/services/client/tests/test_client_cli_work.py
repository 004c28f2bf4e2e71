"""Predictions and builds on a server: submitted, waited for, told in one sentence where they fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux_support.commands import StandIn, answer, mleredux, problem

REPORT = {
    "competition_id": "digits",
    "score": 0.9,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": "2026-11-21T12:00:09Z",
    "submission_path": "/srv/secret/place.csv",
    "task_version": "1",
    "metric": "accuracy",
}
TASK = {
    "id": "digits",
    "version": "1",
    "metric": "accuracy",
    "direction": "maximize",
    "submission": {"file": "submission.csv"},
    "thresholds": {"gold": 0.98, "silver": 0.97, "bronze": 0.96, "median": 0.9},
}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    server = StandIn()
    monkeypatch.setenv("MLEREDUX_TOKEN", "mlr_only-for-this-test")
    monkeypatch.setenv("MLEREDUX_SERVER", server.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("id,digit\n1,7\n")
    server.answers["GET /v1/tasks/digits"] = answer(TASK)
    yield server
    server.close()


def test_a_file_is_handed_in_and_its_grade_waited_for(there: StandIn) -> None:
    queued = {"id": "s1", "task": "digits", "status": "queued", "message": None, "report": None}
    there.answers["POST /v1/submissions"] = answer(queued, 202)
    there.answers["GET /v1/submissions/s1"] = [
        answer({**queued, "status": "grading"}),
        answer({**queued, "status": "done", "report": REPORT}),
    ]
    told = mleredux("grade", "mine.csv", "digits", "--project", "lab", "--json")
    assert told.json["score"] == 0.9 and told.json["submission_path"] == "mine.csv"
    sent = there.asked[0]
    assert b"id,digit\n1,7\n" in sent.body and b'name="task"' in sent.body and b"lab" in sent.body
    assert sent.headers["prefer"].startswith("wait=") and sent.headers["idempotency-key"]


def test_a_grader_that_fails_is_no_score(there: StandIn) -> None:
    failed = {"id": "s1", "task": "digits", "status": "failed", "message": "The task's answers are damaged."}
    there.answers["POST /v1/submissions"] = answer(failed, 201)
    told = mleredux("grade", "mine.csv", "digits")
    assert told.code == 1 and told.err == "Error: The task's answers are damaged.\n"


def test_a_file_that_is_not_there_is_reported_without_sending_anything(there: StandIn) -> None:
    told = mleredux("grade", "absent.csv", "digits", "--json").json
    assert told["message"] == "absent.csv does not exist." and told["gold_threshold"] == 0.98
    assert (told["submission_exists"], told["valid_submission"], told["score"]) == (False, False, None)
    link = Path("link.csv")
    link.symlink_to("mine.csv")
    assert "is a link" in mleredux("grade", "link.csv", "digits").out
    assert [asked.method for asked in there.asked] == ["GET", "GET"]


def test_the_form_is_looked_at_without_grading(there: StandIn) -> None:
    there.answers["POST /v1/validations"] = answer({"valid": False, "message": "submission.csv has 1 row, not 540."})
    told = mleredux("validate", "mine.csv", "digits")
    assert told.code == 3 and told.out == "mine.csv has 1 row, not 540.\n"
    assert "idempotency-key" not in there.asked[0].headers
    assert mleredux("validate", "absent.csv", "digits", "--json").json["message"] == "absent.csv does not exist."


def test_a_task_that_is_not_there_is_said_as_here(there: StandIn) -> None:
    there.answers["POST /v1/submissions"] = problem(404, "not-found", "There is no task 'digit'.", "See the list.")
    told = mleredux("grade", "mine.csv", "digit")
    assert told.code == 1 and told.err == "Error: There is no task 'digit'. See the list.\n"


BUILD = {"id": "b1", "agent": "repo:https://x.example/a.git@main", "status": "queued", "message": None, "cached": None}


def test_an_agent_is_built_and_its_pinned_name_printed(there: StandIn) -> None:
    pinned = "repo:https://x.example/a.git@0123456789abcdef"
    there.answers["POST /v1/builds"] = answer(BUILD, 202)
    ready = {**BUILD, "status": "ready", "agent": pinned, "cached": False}
    there.answers["GET /v1/builds/b1"] = [answer({**BUILD, "status": "building"}), answer(ready)]
    told = mleredux("agent", "build", str(BUILD["agent"]), "-O", "depth=2", "--sandbox", "docker")
    assert told.code == 0 and told.out == f"{pinned}\n" and f"--agent {pinned}" in told.err
    assert there.bodies("POST", "/v1/builds") == [
        {"agent": BUILD["agent"], "options": {"depth": 2}, "sandbox": "docker"}
    ]
    there.answers["POST /v1/builds"] = answer({**ready, "cached": True}, 202)
    there.answers["GET /v1/builds/b1"] = answer({**ready, "cached": True})
    assert mleredux("agent", "build", "x", "--json").json["cached"] is True


def test_a_build_that_fails_shows_its_log_on_request(there: StandIn) -> None:
    there.answers["POST /v1/builds"] = answer(BUILD, 202)
    there.answers["GET /v1/builds/b1"] = answer({**BUILD, "status": "failed", "message": "pip ended with code 1."})
    text = f"id: 4\nevent: log\ndata: {json.dumps({'text': 'no such package' + chr(10)})}\n\nevent: end\ndata: {{}}\n\n"
    stream = answer(None)
    stream.body, stream.headers = text.encode(), {"Content-Type": "text/event-stream"}
    there.answers["GET /v1/builds/b1/log"] = stream
    told = mleredux("agent", "build", "x", "--follow")
    assert told.code == 4 and "no such package\n" in told.err and "Error: pip ended with code 1." in told.err
