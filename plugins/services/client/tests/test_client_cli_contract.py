"""What the commands ask of a server and make of its answers, by the contract: a stand-in answers over a real socket."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mleredux_client.cli.service import Service
from mleredux_support.commands import Answer, Asked, StandIn, answer, mleredux, page, problem

TOKEN = "mlr_only-for-this-test"
RUN = {
    "id": "20261121-120000-digits-dummy-abc123",
    "task": "digits",
    "agent": "dummy",
    "sandbox": "process",
    "seed": 0,
    "status": "queued",
    "cause": None,
    "message": None,
    "waiting_for": "a free slot",
    "score": None,
    "medal": None,
    "experiment": None,
    "project": "p1",
    "user": "ann",
    "labels": {},
    "created_at": "2026-11-21T12:00:00Z",
    "updated_at": "2026-11-21T12:00:09.500Z",
}
REPORT = {
    "competition_id": "digits",
    "score": 0.98,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": "2026-11-21T12:00:09Z",
    "submission_path": "submission.csv",
    "task_version": "1",
    "metric": "accuracy",
    "something_new": [1],
    "ledger": {"validations": 2, "later": None},
}


@pytest.fixture
def there() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def environment(there: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MLEREDUX_TOKEN", TOKEN)
    monkeypatch.setenv("MLEREDUX_SERVER", there.url)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def states(*statuses: str, **last: Any) -> list[Answer]:
    runs = [{**RUN, "status": status} for status in statuses]
    runs[-1] |= last
    return [answer(run) for run in runs]


def test_a_run_is_asked_for_watched_and_shown_as_a_local_one(there: StandIn) -> None:
    there.answers["POST /v1/runs"] = answer(RUN, 201)
    ended = states("running", "grading", "done", "done", report=REPORT)
    there.answers[f"GET /v1/runs/{RUN['id']}"] = ended
    told = mleredux("run", "digits", "--agent", "dummy", "--time-limit", "2m", "-O", "depth=3", "--label", "who=me")
    assert told.code == 0, told.err
    assert there.bodies("POST", "/v1/runs") == [
        {
            "task": "digits",
            "agent": "dummy",
            "seed": 0,
            "limits": {"time_limit": 120},
            "options": {"depth": 3},
            "labels": {"who": "me"},
        }
    ]
    assert there.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert there.asked[0].headers["idempotency-key"]
    for words in ("queued: waiting for a free slot", "running the agent", "done"):
        assert f"digits · dummy · {words}" in told.err
    assert "0.98000 (accuracy)" in told.out and "9.5 s" in told.out and f"mleredux artifacts {RUN['id']}" in told.out


def test_the_json_record_is_the_local_one(there: StandIn) -> None:
    there.answers["POST /v1/runs"] = answer(RUN, 201)
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("done", report=REPORT)
    told = mleredux("run", "digits", "--agent", "dummy", "--json")
    record = told.json
    assert told.code == 0 and told.err == ""
    local = {"id", "task", "agent", "seed", "sandbox", "status", "cause", "message", "report", "path", "created_at"}
    assert local <= set(record) and record["report"] == REPORT and record["path"] is None
    assert record["url"] == f"{there.url}/v1/runs/{RUN['id']}"


@pytest.mark.parametrize(
    ("status", "cause", "code"),
    [
        ("failed", "agent_crashed", 3),
        ("timed_out", "agent_timed_out", 3),
        ("failed", "environment_broke", 4),
        ("cancelled", "cancelled", 130),
    ],
)
def test_exit_codes_are_the_local_ones(there: StandIn, status: str, cause: str, code: int) -> None:
    there.answers["POST /v1/runs"] = answer(RUN, 201)
    ended = states(status, cause=cause, message="It went wrong.")
    there.answers[f"GET /v1/runs/{RUN['id']}"] = ended
    told = mleredux("run", "digits", "--agent", "dummy")
    assert told.code == code and "It went wrong." in told.out


def test_several_runs_are_one_experiment(there: StandIn) -> None:
    runs = [{**RUN, "id": f"run-{number}", "seed": number, "experiment": "e1"} for number in range(2)]
    done = [{**run, "status": "done"} for run in runs]
    there.answers["POST /v1/experiments"] = answer({"id": "e1", "runs": runs}, 201)
    there.answers["GET /v1/experiments/e1"] = answer({"id": "e1", "runs": done})
    for run in done:
        there.answers[f"GET /v1/runs/{run['id']}"] = answer({**run, "report": REPORT})
    told = mleredux("run", "digits", "--agent", "dummy", "--seed", "0", "--seed", "1", "--set", "starter", "--json")
    assert [record["id"] for record in told.json] == ["run-0", "run-1"]
    assert there.bodies("POST", "/v1/experiments") == [
        {"tasks": ["digits"], "sets": ["starter"], "agents": ["dummy"], "seeds": [0, 1]}
    ]


def test_detached_runs_are_named_and_left(there: StandIn) -> None:
    there.answers["POST /v1/runs"] = answer(RUN, 201)
    told = mleredux("run", "digits", "--agent", "dummy", "--detach")
    assert told.code == 0 and told.out == f"{RUN['id']}\n" and "mleredux runs cancel" in told.err
    assert len(there.asked) == 1


@pytest.mark.parametrize("option", [("--runs-dir", "x"), ("--data-dir", "x"), ("--base-image", "x"), ("--jobs", "1")])
def test_options_of_this_machine_are_refused(there: StandIn, option: tuple[str, str]) -> None:
    told = mleredux("run", "digits", "--agent", "dummy", *option)
    assert told.code == 2 and f"{option[0]} cannot be combined with --server" in told.err and there.asked == []


def test_an_agent_must_be_named_and_the_servers_are_told(there: StandIn) -> None:
    there.answers["GET /v1/agents"] = page({"id": "dummy"}, {"id": "baseline"})
    told = mleredux("run", "digits")
    assert told.code == 2 and "available: dummy, baseline." in told.err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (problem(401, "unauthenticated", "The token is not known."), "The token is not known. Log in with"),
        (
            problem(403, "quota-exceeded", "The project has 4 runs already.", "Wait for one."),
            "Error: The project has 4 runs already. Wait for one.",
        ),
        (
            problem(422, "invalid", "That can't be.", errors=[{"field": "limits.cpus", "message": "is 0"}]),
            "Error: That can't be. (limits.cpus: is 0)",
        ),
        (problem(500, "internal", "It broke.", instance="req-7"), "Its id in the server's log is req-7."),
        (Answer(307, b"", {"Location": "http://elsewhere.example/v1/runs"}), "elsewhere.example"),
        (Answer(404, b"Not Found", {"Content-Type": "text/plain"}), "does not support this request."),
        (Answer(200, b"<html>", {"Content-Type": "text/html"}), "Check that this is the URL of a mleredux service."),
    ],
)
def test_what_a_server_refuses_is_one_sentence(there: StandIn, given: Answer, sentence: str) -> None:
    there.answers["POST /v1/runs"] = given
    told = mleredux("run", "digits", "--agent", "dummy")
    assert told.code == 1 and sentence in told.err and "Traceback" not in told.err
    assert len(there.asked) == 1, "nothing is asked twice that can't get better"


def test_a_server_that_is_away_for_a_while_is_waited_for(there: StandIn) -> None:
    there.answers |= {"POST /v1/runs": answer(RUN, 201), f"GET /v1/runs/{RUN['id']}": states("running")}
    again: list[StandIn] = []

    def go_away() -> None:
        until = time.monotonic() + 60
        while len(there.asked) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        there.close()
        time.sleep(1)
        again.append(StandIn(there.port, {f"GET /v1/runs/{RUN['id']}": states("done", report=REPORT)}))

    away = threading.Thread(target=go_away)
    away.start()
    told = mleredux("run", "digits", "--agent", "dummy")
    away.join()
    again[0].close()
    assert told.code == 0 and again[0].asked


def watched(there: StandIn, *options: str) -> subprocess.Popen[str]:
    """The real program in a process of its own, that has begun to watch."""
    there.answers["POST /v1/runs"] = answer(RUN, 201)
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("running")
    process = subprocess.Popen(
        [sys.executable, "-m", "mleredux", "run", "digits", "--agent", "dummy", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while sum(asked.method == "GET" for asked in there.asked) < 2:
        assert process.poll() is None and time.monotonic() < until, [asked.path for asked in there.asked]
        time.sleep(0.02)
    return process


def test_ctrl_c_stops_watching_and_not_the_run(there: StandIn) -> None:
    process = watched(there)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "the runs continue" in told and f"mleredux runs cancel {RUN['id']}`" in told
    assert "Traceback" not in told and not any(asked.path.endswith("/cancel") for asked in there.asked)


def test_ctrl_c_cancels_where_that_was_asked_for(there: StandIn) -> None:
    def cancel(_asked: Asked) -> Answer:
        there.answers[f"GET /v1/runs/{RUN['id']}"] = states("cancelled", cause="cancelled")
        return answer(RUN, 202)

    there.answers[f"POST /v1/runs/{RUN['id']}/cancel"] = cancel
    process = watched(there, "--cancel-on-interrupt")
    process.send_signal(signal.SIGTERM)
    out, told = process.communicate(timeout=90)
    assert process.returncode == 130 and "digits · dummy · cancelled" in told and "cancelled" in out


def stream(*messages: str) -> Answer:
    return Answer(200, "".join(messages).encode(), {"Content-Type": "text/event-stream"})


def chunk(offset: int, text: str) -> str:
    return f"id: {offset}\nevent: log\ndata: {json.dumps({'text': text})}\n\n"


def test_logs_are_followed_over_a_break_without_gap_or_repeat(there: StandIn) -> None:
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("queued", "running")
    path = f"/v1/runs/{RUN['id']}/logs/agent.log"
    end = 'event: end\ndata: {"status": "done"}\n\n'
    there.answers[f"GET {path}"] = [
        problem(404, "not-yet", "There is no log yet."),
        stream(": hello\n\n", chunk(4, "one\n")),
        stream(chunk(4, "one\n"), chunk(9, "t\x1bwo\n"), end),
    ]
    told = mleredux("logs", RUN["id"], "--follow")
    assert told.code == 0 and told.out == "one\nt\\x1bwo\n"
    asked = [asked.headers.get("last-event-id") for asked in there.asked if asked.path == path]
    assert asked == [None, None, "4"]


def test_logs_of_now_are_copied(there: StandIn) -> None:
    there.answers["GET /v1/me"] = answer({"user": {"name": "ann"}})
    there.answers["GET /v1/runs"] = page({**RUN, "id": "newer", "user": "bob"}, RUN)
    there.answers[f"GET /v1/runs/{RUN['id']}/logs/build.log"] = Answer(
        200, b"a\x07b\xff", {"Content-Type": "text/plain"}
    )
    assert mleredux("logs", "--build").out == "a\\x07b\\xff", "one's own newest run, though an admin sees all"


def test_a_log_is_copied_whole_however_often_the_connection_breaks(fake: Any, pauses: list[float]) -> None:
    content, path = (
        "".join(f"epoch {number}: früh\n" for number in range(100)).encode(),
        "/v1/runs/run-1/logs/agent.log",
    )
    fake.serve_file(path, content, cut=150, tag=False)
    with closing(Service(fake.url, fake.token)) as service:
        assert b"".join(service.content(path)) == content
    assert fake.times(f"GET {path}") > 10, "more breaks than tries, but something new before each"


def test_runs_are_found_by_a_part_of_their_id(there: StandIn) -> None:
    there.answers["GET /v1/runs"] = page(RUN, {**RUN, "id": "20261121-120000-digits-other-ffffff"})
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("done", report=REPORT)
    assert mleredux("runs", "show", "abc123", "--json").json["id"] == RUN["id"]
    several = mleredux("runs", "show", "digits")
    assert several.code == 1 and "2 runs match 'digits'." in several.err
    none = mleredux("runs", "show", "../me")
    assert none.code == 1 and "See `mleredux runs`." in none.err
    assert all(asked.path != "/v1/me" for asked in there.asked)


def test_runs_are_listed_with_the_filters_of_the_server(there: StandIn) -> None:
    there.answers["GET /v1/runs"] = page(*[{**RUN, "id": f"run-{number}"} for number in range(3)])
    arguments = ("--status", "done", "--status", "failed", "--label", "a=b", "--limit", "2")
    told = mleredux("runs", "--task", "digits", *arguments)
    assert "run-1" in told.out and "run-2" not in told.out and "… and more (--limit)" in told.out
    assert there.asked[0].query == {
        "task": ["digits"], "status": ["done", "failed"], "label": ["a:b"], "limit": ["3"],
    }  # fmt: skip
    rows = mleredux("runs", "--json").json
    local = {"id", "task", "agent", "seed", "sandbox", "status", "cause", "score", "medal", "created_at", "updated_at"}
    assert local <= set(rows[0])


def test_detached_runs_are_waited_for_later(there: StandIn) -> None:
    ended = {**RUN, "status": "failed", "cause": "out_of_memory", "report": None}
    there.answers[f"GET /v1/runs/{RUN['id']}"] = [*states("running", "grading"), answer(ended)]
    told = mleredux("runs", "wait", RUN["id"], "--json")
    assert told.code == 3 and told.json["cause"] == "out_of_memory"
    there.answers["GET /v1/experiments/e1"] = answer({"id": "e1", "runs": [ended]})
    told = mleredux("runs", "wait", "--experiment", "e1", "--json")
    assert told.code == 3 and [record["id"] for record in told.json] == [RUN["id"]]
    assert mleredux("runs", "wait").code == 2


def test_what_others_wrote_can_not_drive_the_terminal(there: StandIn) -> None:
    hostile = {**RUN, "agent": "repo:\x1b]0;owned\x07", "status": "failed", "message": "It broke.\x1b[2J\nOr not."}
    there.answers |= {"GET /v1/runs": page(hostile), f"GET /v1/runs/{RUN['id']}": answer({**hostile, "report": None})}
    there.answers[f"GET /v1/runs/{RUN['id']}/events"] = page(
        {"seq": 0, "time": RUN["created_at"], "type": "state", "data": {"message": "\x1b[31mred"}}
    )
    for arguments in (("runs",), ("runs", "show", RUN["id"])):
        told = mleredux(*arguments)
        assert told.code == 0 and "\x1b" not in told.out and "\\x1b" in told.out


def test_deleting_asks_or_is_told_to(there: StandIn) -> None:
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("done")
    there.answers[f"DELETE /v1/runs/{RUN['id']}"] = Answer(204, b"", {})
    refused = mleredux("runs", "delete", RUN["id"])
    assert refused.code == 2 and "requires --yes" in refused.err
    assert mleredux("runs", "delete", RUN["id"], "--yes").code == 0
    assert [asked.method for asked in there.asked].count("DELETE") == 1


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside", "a/../../outside", "a//b"])
def test_artifacts_stay_in_the_folder(there: StandIn, tmp_path: Path, name: str) -> None:
    there.answers[f"GET /v1/runs/{RUN['id']}"] = states("done")
    files = [{"path": path, "size": 2, "producer": "agent", "media_type": "text/plain"} for path in ("fine", name)]
    there.answers[f"GET /v1/runs/{RUN['id']}/artifacts"] = page(*files)
    told = mleredux("artifacts", RUN["id"], "--output", "copies")
    assert (told.code == 1 and "outside" in told.err) or "can't be stored" in told.err
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [], "nothing is fetched then"


def test_commands_of_the_local_group_say_so() -> None:
    told = mleredux("runs", "reindex")
    assert told.code == 2 and "`runs reindex` runs on this machine only" in told.err


def test_without_a_token_nothing_is_asked(there: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLEREDUX_TOKEN")
    told = mleredux("runs")
    assert told.code == 1 and f"mleredux login {there.url}" in told.err and there.asked == []


def test_a_server_that_is_down_is_named(there: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_client._sync.http.sleep", lambda _seconds: None)
    there.close()
    told = mleredux("list")
    assert told.code == 1 and there.url in told.err and "that the service is running" in told.err
