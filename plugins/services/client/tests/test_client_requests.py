"""Requests: what is tried again and what is not, what errors say, and that the token is in none of them."""

from __future__ import annotations

import logging
import pickle
import socket
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import mleredux_client as sdk
import pytest
from mleredux_client import Client

ME = {
    "user": {"id": "u1", "name": "ada", "admin": False},
    "token": {"id": "t1", "name": "laptop", "scopes": ["read"], "expires_at": None},
    "projects": [{"id": "p1", "name": "ada", "role": "owner", "quota": {"cpus": 2}, "usage": {"queued_runs": 1}}],
    "default_project": "p1",
}


def test_every_request_carries_the_token_and_the_clients_name(fake: Any, client: Client) -> None:
    fake.serve("GET /v1/me", ME)
    me = client.me()
    assert (me.user.name, me.projects[0].quota.cpus, me.projects[0].quota.gpus) == ("ada", 2, None)
    assert fake.asked[0].headers["Authorization"] == f"Bearer {fake.token}"
    assert fake.asked[0].headers["User-Agent"].startswith("mleredux-client/")


@pytest.mark.parametrize("status", [429, 502, 503, 504, None])
def test_what_may_pass_is_tried_again_at_growing_intervals(
    fake: Any, client: Client, pauses: list[float], status: int | None
) -> None:
    fake.serve("GET /v1/me", ME)
    fake.fail("GET /v1/me", *[fake.problem(status) if status else fake.broken] * 4)
    assert client.me().user.name == "ada"
    assert pauses == [0.5, 1, 2, 4]


def test_pauses_are_drawn_from_the_whole_interval_and_have_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    from mleredux_client.retries import Attempts, RetryPolicy

    drawn: list[tuple[float, float]] = []
    monkeypatch.setattr("mleredux_client.retries.random.uniform", lambda low, high: drawn.append((low, high)) or 0.0)
    attempts = Attempts(RetryPolicy(retries=7))
    while attempts.pause() is not None:
        pass
    assert drawn == [(0, 0.5), (0, 1), (0, 2), (0, 4), (0, 8), (0, 10), (0, 10)]


def test_after_enough_tries_the_problem_is_told(fake: Any, client: Client) -> None:
    fake.fail("GET /v1/me", *[fake.problem(503, "unavailable", "The database is locked.")] * 9)
    with pytest.raises(sdk.Unavailable, match=r"^The database is locked. Do else.$") as told:
        client.me()
    assert (told.value.status, told.value.request_id, told.value.slug) == (503, "req-1", "unavailable")
    assert fake.times("GET /v1/me") == 6


@pytest.mark.parametrize("status", [502, 504])
def test_a_service_that_is_started_again_is_waited_for(
    fake: Any, client: Client, pauses: list[float], status: int
) -> None:
    fake.serve("GET /v1/me", ME)
    fake.fail("GET /v1/me", *[fake.problem(status)] * 10)
    client.me()
    assert fake.times("GET /v1/me") == 11 and sum(pauses) > 40


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 422, 500, 507])
def test_what_will_not_pass_is_not_tried_again(fake: Any, client: Client, status: int) -> None:
    fake.fail("GET /v1/me", *[fake.problem(status)] * 2)
    with pytest.raises(sdk.MlereduxApiError):
        client.me()
    assert fake.times("GET /v1/me") == 1


@pytest.mark.parametrize("as_date", [False, True])
def test_a_service_that_names_a_time_is_asked_again_after_it(
    fake: Any, client: Client, pauses: list[float], as_date: bool
) -> None:
    fake.serve("GET /v1/me", ME)
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=7), usegmt=True) if as_date else "7"
    fake.fail("GET /v1/me", fake.problem(429, "too-many-requests", Retry_After=when))
    client.me()
    assert 6 - as_date <= pauses[0] <= 7.5


def test_a_service_that_asks_for_an_hour_gets_an_error_that_says_so(fake: Any, client: Client) -> None:
    fake.fail("GET /v1/me", fake.problem(429, "too-many-requests", Retry_After="3600"))
    with pytest.raises(sdk.TooManyRequests) as told:
        client.me()
    assert told.value.retry_after == 3600


@pytest.mark.parametrize("value", ["", "soon", "-1", "9" * 40, "Wed, 99 Nov"])
def test_a_retry_after_that_is_nonsense_is_as_none(fake: Any, client: Client, pauses: list[float], value: str) -> None:
    fake.serve("GET /v1/me", ME)
    fake.fail("GET /v1/me", fake.problem(503, Retry_After=value))
    client.me()
    assert pauses == [0.5]


def test_a_run_is_asked_for_again_under_the_same_key_so_that_there_is_one(fake: Any, client: Client) -> None:
    fake.serve("POST /v1/runs", fake.run_document(status="queued"), 201)
    fake.fail("POST /v1/runs", fake.broken, fake.problem(409, "idempotency-conflict"), fake.problem(502))
    assert client.run("digits").status == "queued"
    keys = {asked.headers["Idempotency-Key"] for asked in fake.asked}
    assert len(fake.asked) == 4 and len(keys) == 1
    client.run("digits")
    assert len({asked.headers["Idempotency-Key"] for asked in fake.asked}) == 2


def test_a_conflict_that_is_not_about_our_own_repeat_is_told(fake: Any, client: Client) -> None:
    fake.fail("POST /v1/runs/run-1/retry", fake.problem(409, "conflict", "Run run-1 is alive."))
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="running"))
    with pytest.raises(sdk.Conflict, match="is alive"):
        client.get_run("run-1").retry()


@pytest.mark.parametrize(("fault", "tries"), [("broken", 1), (502, 1), (429, 2), (503, 2)])
def test_a_change_of_which_nobody_knows_what_became_is_not_sent_again(
    fake: Any, client: Client, fault: Any, tries: int
) -> None:
    fake.serve("PATCH /v1/projects/p1", ME["projects"][0])
    fake.fail("PATCH /v1/projects/p1", fake.broken if fault == "broken" else fake.problem(fault))
    if tries == 1:
        with pytest.raises(sdk.Unavailable):
            client.projects.update("p1", quota={"cpus": 4})
    else:
        client.projects.update("p1", quota={"cpus": 4})
    assert fake.times("PATCH /v1/projects/p1") == tries


def test_what_is_gone_after_a_broken_deletion_was_deleted_by_it(fake: Any, client: Client) -> None:
    fake.fail("DELETE /v1/tokens/t1", fake.broken)
    client.tokens.delete("t1")
    with pytest.raises(sdk.NotFound):
        client.tokens.delete("t1")


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (401, "unauthenticated", sdk.Unauthenticated),
        (403, "forbidden", sdk.Forbidden),
        (403, "quota-exceeded", sdk.QuotaExceeded),
        (404, "not-found", sdk.NotFound),
        (404, "not-yet", sdk.NotYet),
        (409, "conflict", sdk.Conflict),
        (412, "precondition-failed", sdk.PreconditionFailed),
        (413, "too-large", sdk.TooLarge),
        (416, "range", sdk.RangeNotSatisfiable),
        (422, "invalid", sdk.Invalid),
        (422, "idempotency-mismatch", sdk.Invalid),
        (507, "no-space", sdk.NoSpace),
        (500, "internal", sdk.ServerError),
        (418, "teapot", sdk.MlereduxApiError),
    ],
)
def test_each_problem_is_an_error_of_its_own(
    fake: Any, client: Client, status: int, slug: str, kind: type[sdk.MlereduxApiError]
) -> None:
    fake.fail("GET /v1/me", fake.problem(status, slug, "So it is."))
    with pytest.raises(sdk.MlereduxApiError) as told:
        client.me()
    assert type(told.value) is kind
    assert (told.value.detail, told.value.message, told.value.hint) == ("So it is.", "So it is.", "Do else.")


def test_a_request_that_makes_no_sense_says_which_field(fake: Any, client: Client) -> None:
    wrong = {"type": "urn:mleredux:problem:invalid", "detail": "The request is invalid.", "errors": []}
    wrong["errors"] = [{"field": "limits.cpus", "message": "must be greater than 0"}, "nonsense"]
    fake.fail("POST /v1/runs", fake.said(wrong, 422))
    with pytest.raises(sdk.Invalid, match=r"invalid\. \(limits\.cpus: must be greater than 0\)") as told:
        client.run("digits", limits={"cpus": -1})
    assert told.value.fields == [{"field": "limits.cpus", "message": "must be greater than 0"}]


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway</html>", b"", b"[1]", b'{"detail": 7}', b"[" * 50_000, b"\xff\xfe"]
)
def test_an_error_of_something_in_between_is_still_a_sentence(fake: Any, client: Client, body: bytes) -> None:
    fake.fail("GET /v1/me", fake.answer(500, body))
    with pytest.raises(sdk.ServerError, match=r"^The service answered GET /v1/me with status 500\.$"):
        client.me()


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"{", b"[" * 50_000])
def test_an_answer_that_no_service_gives_asks_for_the_right_url(fake: Any, client: Client, body: bytes) -> None:
    fake.fail("GET /v1/me", fake.answer(200, body))
    with pytest.raises(sdk.UnexpectedAnswer, match=r"not JSON\. Check that this is the URL of a mleredux service\."):
        client.me()


def test_an_answer_of_another_shape_says_where_and_shows_no_values(fake: Any, client: Client) -> None:
    fake.serve("POST /v1/tokens", {"id": 7, "name": "x", "token": "mlr_secret"}, 201)
    with pytest.raises(sdk.UnexpectedAnswer, match=r"not a valid Token \(id: ") as told:
        client.tokens.create("x")
    assert "mlr_secret" not in str(told.value)


def test_a_redirection_is_not_followed_with_the_token(fake: Any, client: Client) -> None:
    fake.fail("GET /v1/me", fake.answer(307, b"", {"Location": "https://elsewhere.example/v1/me"}))
    with pytest.raises(sdk.MlereduxApiError, match=r"points to https://elsewhere\.example/v1/me"):
        client.me()


def test_a_service_that_is_not_there_is_one_sentence_with_its_url(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "t") as client, pytest.raises(sdk.Unreachable) as told:
        client.me()
    assert str(told.value) == (
        f"http://127.0.0.1:{port} can't be reached ([Errno 111] Connection refused). "
        "Check the URL, and that the service is running."
    )
    assert len("".join(traceback.format_exception(told.value)).split("Traceback")) == 2  # no chain of others' errors
    assert len(pauses) == 5


def test_a_service_that_says_nothing_is_given_up(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with Client(url, "t", timeout=0.05, retries=1) as client, pytest.raises(sdk.Unreachable, match="in time"):
            client.me()
        assert time.monotonic() - begun < 60


def test_the_token_is_in_no_representation_no_error_and_no_log(
    fake: Any, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for logger in ("", "httpx", "httpcore"):  # a server in this process, of another test, silences these
        caplog.set_level(logging.DEBUG, logger=logger)
    fake.serve("GET /v1/me", ME)
    client.me()
    echo = {"detail": f"No such token: {fake.token}", "title": fake.token, "hint": f"Forget {fake.token}."}
    fake.fail("GET /v1/me", fake.said(echo, 401))
    with pytest.raises(sdk.Unauthenticated) as told:
        client.me()
    run = client._http
    shown = [repr(client), repr(vars(client)), repr(run), str(told.value), repr(vars(told.value)), caplog.text]
    shown += ["".join(traceback.format_exception(told.value)), repr(run._client.auth), repr(run._client.headers)]
    assert "GET" in caplog.text and str(told.value) == "No such token: *** Forget ***."
    assert not [text for text in shown if fake.token in text]


def test_a_new_token_is_said_when_asked_for_only(fake: Any, client: Client) -> None:
    fake.serve("POST /v1/tokens", {"id": "t2", "name": "ci", "scopes": ["read"], "token": "mlr_new"}, 201)
    made = client.tokens.create("ci", ["read"], expires_in=60)
    assert "mlr_new" not in f"{made} {made!r} {made.model_dump_json()}"
    assert made.token.get_secret_value() == "mlr_new"
    assert fake.asked[0].json == {"name": "ci", "scopes": ["read"], "expires_in": 60}


def test_webhooks_are_made_tried_and_listed(fake: Any, client: Client) -> None:
    hook = {"id": "w1", "project": "p1", "url": "https://ci.example/x", "events": ["run.ended"]}
    fake.serve("POST /v1/webhooks", {**hook, "secret": "whsec_new"}, 201)
    fake.serve("POST /v1/webhooks/w1/test", {"id": "d1", "event": "test"}, 202)
    fake.serve(
        "GET /v1/webhooks/w1/deliveries", {"items": [{"id": "d1", "event": "test", "status": 204}], "next": None}
    )
    made = client.webhooks.create(hook["url"], events=["run.ended"])
    assert "whsec_new" not in repr(made) and made.secret.get_secret_value() == "whsec_new"
    assert fake.asked[0].json == {"url": hook["url"], "events": ["run.ended"]}
    assert client.webhooks.test(made).id == client.webhooks.deliveries("w1")[0].id == "d1"


def test_errors_survive_the_way_to_another_process() -> None:
    error = sdk.NotFound("Gone.", hint="Look.", status=404, request_id="r")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status, again.request_id) == (sdk.NotFound, "Gone. Look.", 404, "r")


@pytest.mark.parametrize(
    ("url", "token", "sentence"),
    [
        ("", "t", "No service is set"),
        ("localhost:8765", "t", "URL is invalid"),
        ("ftp://host", "t", "URL is invalid"),
        ("http://", "t", "URL is invalid"),
        ("http://user:pw@host", "t", "must contain only"),
        ("http://host/?token=x", "t", "must contain only"),
        ("http://host", "two\nlines", "The token contains invalid"),
        ("http://host", "schlüssel", "The token contains invalid"),
    ],
)
def test_what_can_be_no_service_is_said_before_anything_is_sent(
    url: str, token: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLEREDUX_SERVER", raising=False)
    with pytest.raises(sdk.UsageError, match=sentence) as told:
        Client(url, token)
    assert "schl" not in str(told.value) and "pw" not in str(told.value)


def test_url_and_token_come_from_the_environment(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.serve("GET /v1/me", ME)
    monkeypatch.setenv("MLEREDUX_SERVER", f"{fake.url}/")
    monkeypatch.setenv("MLEREDUX_TOKEN", f" {fake.token}\n")
    with Client() as client:
        assert (client.me().default_project, repr(client)) == ("p1", f"Client({fake.url!r})")
    assert fake.asked[0].headers["Authorization"] == f"Bearer {fake.token}"


def test_what_a_closed_client_gave_says_that_it_is_closed(fake: Any) -> None:
    fake.serve("GET /v1/runs/run-1", fake.run_document())
    with Client(fake.url, "t") as client:
        run = client.get_run("run-1")
    with pytest.raises(sdk.UsageError, match="This client is closed"):
        run.refresh()
    with pytest.raises(sdk.UsageError, match="This client is closed"):
        list(run.events())


def test_a_service_may_live_beneath_a_path(fake: Any) -> None:
    fake.serve("GET /team/mleredux/v1/me", ME)
    with Client(f"{fake.url}/team/mleredux/", "t") as client:
        assert client.me().user.name == "ada"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_can_not_lead_to_another_path(client: Client, name: str) -> None:
    with pytest.raises(sdk.UsageError):
        client.get_run(name)


def test_hostile_ids_stay_one_segment(fake: Any, client: Client) -> None:
    fake.serve("GET /v1/agents/repo:https://host/a b?c#d", {"id": "x"})
    assert client.agent("repo:https://host/a b?c#d").id == "x"
