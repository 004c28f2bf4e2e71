"""No message of the server names its folders."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux.errors import AgentBroken
from mleredux.models.events import StageEnded
from mleredux.plugin.artifact import Cause, State
from mleredux.plugin.files import cache_dir
from mleredux_server.operations.places import without_places
from mleredux_server.runs.summary import facts_of
from mleredux_support.server_local import LocalServer

RUNS = Path("/srv/ml eredux (a)/runs")
FOLDERS = [RUNS, cache_dir(), Path.home()]


@given(
    folder=st.sampled_from(FOLDERS), before=st.text(max_size=5), name=st.sampled_from(["", "/", "/a b/c.log", ": no"])
)
def test_no_folder_of_the_server_is_named(folder: Path, before: str, name: str) -> None:
    told = without_places(f"{before}{folder}{name}", RUNS)
    assert told is not None and str(folder) not in told and told.endswith(name or "…")


@pytest.mark.parametrize(
    "text", [None, "", "no path", "/srv/ml eredux (a)/runs2/x", "/opt/agent/solve.py", "/task/data"]
)
def test_what_is_no_folder_of_it_stays(text: str | None) -> None:
    assert without_places(text, RUNS) == text


def test_a_failed_run_and_a_refusal_name_none(tmp_path: Path) -> None:
    with LocalServer(tmp_path / "runs").running() as server:
        run = server.make_run()
        run.enter(State.FAILED, cause=Cause.AGENT_CRASHED, message=f"It can't read {run.path}/logs/agent.log.")
        assert facts_of(run).results["message"] == f"It can't read …/{run.id}/logs/agent.log."

        @server.app.get("/broken")
        def broken() -> None:
            raise AgentBroken(f"{run.path} is broken.", hint=f"Look into {run.path.parent}.")

        told = httpx.get(f"{server.url}/broken").json()
        assert (told["detail"], told["hint"]) == (f"…/{run.id} is broken.", "Look into ….")


@pytest.mark.attack
def test_events_and_pages_of_a_failed_run_name_none(tmp_path: Path) -> None:
    with LocalServer(tmp_path / "runs").running() as server:
        run = server.make_run()
        why = f"It can't read {run.path}/logs/agent.log nor {server.service.data.path}/digits."
        run.emit(StageEnded(stage=State.BUILDING, status="failed", seconds=1, cause=Cause.AGENT_CRASHED, message=why))
        run.enter(State.FAILED, cause=Cause.AGENT_CRASHED, message=why)
        server.settle(run.id, "failed")
        client = httpx.Client(base_url=server.url, headers={"Origin": server.url}, timeout=30)
        client.post("/ui/sign-in", data={"token": server.token})
        token = {"Authorization": f"Bearer {server.token}"}
        events, page = f"/v1/runs/{run.id}/events", f"/ui/runs/{run.id}"
        for path, headers in ((events, token), (events, token | {"Accept": "text/event-stream"}), (page, {})):
            shown = client.get(path, headers=headers)
            assert shown.status_code == 200 and f"…/{run.id}/logs/agent.log nor " in shown.text
            assert str(tmp_path) not in shown.text, (path, headers)
