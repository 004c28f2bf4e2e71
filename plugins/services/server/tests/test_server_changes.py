"""Changes of runs after their creation, places in the queue, durations, and messages on invalid fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_client import Client, Conflict, Invalid, UsageError, WaitTimeout
from mleredux_server.scheduler.decision import Demand, Running, Waiting, World
from mleredux_server.scheduler.forecast import Input, forecast
from mleredux_support.server_local import LocalServer


@pytest.fixture(scope="module")
def client(local: LocalServer) -> Iterator[Client]:
    """The admin's client of a server that starts nothing."""
    with Client(local.url, local.token, retries=0) as made:
        yield made


def queued(client: Client, seed: int = 0) -> str:
    return client.run("digits", "dummy", sandbox="process", seed=seed, labels={"kind": "first"}).id


def test_labels_notes_priority_and_pins_change(client: Client) -> None:
    run = client.get_run(queued(client))
    run.update(labels={"best": "yes", "kind": None}, notes="Check this.\nAgain.", priority=7, pinned=True)
    again = client.get_run(run.id)
    assert (again.labels, again.notes) == ({"best": "yes"}, "Check this.\nAgain.")
    assert (again.record.priority, again.record.pinned) == (7, True)
    assert [one.id for one in client.runs(labels={"best": "yes"})] == [run.id]
    assert client.get_run(run.id).update(notes="").notes is None


def test_only_queued_runs_have_a_priority(local: LocalServer, client: Client) -> None:
    run = local.make_run()
    with pytest.raises(Conflict, match="is not queued"):
        client.get_run(run.id).update(priority=1)
    assert client.get_run(run.id).update(notes="still").notes == "still"


def test_actions_on_many_runs_name_those_they_do_not_apply_to(local: LocalServer, client: Client) -> None:
    runs = [queued(client, seed) for seed in range(3)]
    started = local.make_run().id
    told = client.bulk("change", [*runs, started], priority=3)
    assert [one["ok"] for one in told] == [True, True, True, False] and "not queued" in told[3]["message"]
    assert [one["ok"] for one in client.bulk("cancel", runs)] == [True] * 3
    told = client.bulk("delete", [*runs, started, "none"])
    assert [one["run"] for one in told if one["ok"]] == runs
    assert told[3]["message"].endswith("is running.") or "is " in told[3]["message"]
    assert "There is no run" in told[4]["message"]
    assert not [one for one in client.runs() if one.id in runs]


def test_runs_come_as_they_end(local: LocalServer, client: Client) -> None:
    runs = [client.get_run(queued(client, seed)) for seed in range(3)]
    coming = client.as_completed(runs)
    for index in (2, 0, 1):
        runs[index].cancel()
        runs[index].record = runs[index].record.model_copy(update={"status": "queued"})
        assert next(coming).id == runs[index].id
    assert list(coming) == []
    waiting = client.get_run(queued(client))
    with pytest.raises(WaitTimeout, match="1 run not finished yet"):
        list(client.as_completed([waiting], timeout="0.2s"))


def test_a_user_changes_only_what_they_see(local: LocalServer, client: Client) -> None:
    run_id = queued(client)
    headers = {"Authorization": f"Bearer {local.user('eve')}"}
    answer = httpx.patch(f"{local.url}/v1/runs/{run_id}", json={"notes": "x"}, headers=headers)
    assert answer.status_code == 404
    told = httpx.post(f"{local.url}/v1/runs/bulk", json={"action": "cancel", "runs": [run_id]}, headers=headers).json()
    assert not told["results"][0]["ok"] and client.get_run(run_id).status == "queued"


@pytest.mark.parametrize("given", ["2h", 7200, "1h60m", timedelta(hours=2)])
def test_durations_are_numbers_words_and_timedeltas(local: LocalServer, client: Client, given: object) -> None:
    run = client.run("digits", "dummy", sandbox="process", time_limit=given, limits={"grace": "1m"})  # type: ignore[arg-type]
    assert (run.record.limits["time_limit"], run.record.limits["grace"]) == (7200, 60)
    if not isinstance(given, timedelta):
        body = {"task": "digits", "agent": "dummy", "sandbox": "process", "limits": {"time_limit": given}}
        headers = {"Authorization": f"Bearer {local.token}"}
        assert httpx.post(f"{local.url}/v1/runs", json=body, headers=headers).json()["limits"]["time_limit"] == 7200
    token = client.tokens.create("short", expires_in=given)  # type: ignore[arg-type]
    assert token.expires_at is not None and token.created_at is not None
    assert 7000 < (token.expires_at - token.created_at).total_seconds() < 7400
    plan = {
        "experiment": {"name": "p", "tasks": ["digits"]},
        "arms": {"a": {"agent": "dummy", "sandbox": "process", "limits": {"time_limit": "2h"}}},
    }
    assert client.check(plan)


def test_what_is_no_duration_is_said_once(local: LocalServer, client: Client) -> None:
    with pytest.raises(UsageError, match="'soon' is not a duration"):
        client.run("digits", "dummy", time_limit="soon")
    body = {"task": "digits", "agent": "dummy", "limits": {"time_limit": "soon"}}
    answer = httpx.post(f"{local.url}/v1/runs", json=body, headers={"Authorization": f"Bearer {local.token}"})
    assert answer.json()["detail"].startswith("limits.time_limit: 'soon' is not a valid duration")


def test_invalid_fields_are_named_once_as_they_were_written_with_what_was_meant(client: Client) -> None:
    with pytest.raises(Invalid) as error:
        client.run("digits", "dummy", limits={"cpu": 1})
    assert str(error.value).splitlines()[0].startswith("limits.cpu: There is no such field. Did you mean cpus?")
    assert str(error.value).count("limits.cpu") == 1
    with pytest.raises(Invalid, match="priority: Input should be less than or equal to 100"):
        client.run("digits", "dummy", priority=1000)
    with pytest.raises(Invalid, match=r"plan\.arms\.a\.limits\.cpus: Input should be greater"):
        client.experiment(
            plan={
                "experiment": {"name": "p", "tasks": ["digits"]},
                "arms": {"a": {"agent": "dummy", "limits": {"cpus": 0}}},
            }
        )


def test_the_forecast_is_what_the_scheduler_would_do() -> None:
    one = Demand(1, 0, 0)
    waiting = [Waiting(f"a{n}", "ann", "p", one, n, priority=n == 2) for n in range(3)] + [
        Waiting("b0", "bob", "p", one, 9.0)
    ]
    running = [Running("r", "ann", "p", one, 0.0)]
    decision = Input(waiting, running, World(Demand(2, 0, 0), workers=1, now=100.0))
    found = forecast(decision, {"r": 160.0, **{run.id: 50.0 for run in waiting}})
    places = {name: (place.position, place.starts_in) for name, place in found.items()}
    assert places["b0"] == (1, 0.0), "bob has nothing running"
    assert places["a2"] == (2, 50.0), "ann's own order is by priority"
    assert (places["a0"], places["a1"]) == ((3, 60.0), (4, 100.0))


@given(st.lists(st.booleans(), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 3))
def test_the_forecast_knows_that_preemptible_runs_make_room(leaving: list[bool], cpus: int, more: int) -> None:
    running = [
        Running(f"r{n}", "ann", "p", Demand(1, 0, 0), 0.0, preemptible=True, leaving=gone)
        for n, gone in enumerate(leaving)
    ]
    waiting = [Waiting(f"w{n}", "bob", "p", Demand(cpus, 0, 0), float(n)) for n in range(1 + more)]
    world = World(Demand(len(leaving), 0, 0), workers=0, now=100.0)
    places = forecast(Input(waiting, running, world), {run.id: 36_000.0 for run in [*waiting, *running]})
    assert sorted(place.position for place in places.values()) == list(range(1, len(waiting) + 1))
    for number, run in enumerate(waiting):
        turn = number // (len(leaving) // cpus) if cpus <= len(leaving) else None
        seconds = places[run.id].starts_in
        assert (seconds is None) if turn is None else turn * 36_000 <= (seconds or 0.0) <= turn * 36_000 + 10


def test_a_queued_run_tells_its_place(local: LocalServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = client.get_run(queued(client)), client.get_run(queued(client))
    demand = Demand(1, 0, 0)
    waiting = [Waiting(first.id, "u", "p", demand, 1.0), Waiting(second.id, "u", "p", demand, 2.0)]
    local.service.forecasts.seen = Input(waiting, [], World(Demand(1, 0, 0), workers=1, now=10.0))
    place = first.refresh().queue
    assert place is not None and (place.position, place.starts_in) == (1, 0)
    place = second.refresh().queue
    assert place is not None and place.position == 2 and place.starts_in is not None and place.starts_in > 0
    monkeypatch.delattr("mleredux_server.scheduler.forecast.forecast")  # it is not made again
    assert local.service.forecasts.of("none") is None
    local.service.forecasts.seen = None
    assert local.service.forecasts.of(first.id) is None
