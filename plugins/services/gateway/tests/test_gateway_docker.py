"""Two concurrent agents in real containers, with only the gateway: what they reach, receive, and what is stored.

The agents' code is in `probing_agent.py`; they run once, and the tests check their observations and output files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux._core.data import DataStore
from mleredux._core.data.installation import installation_salt
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run, RunStore
from mleredux.models import State
from mleredux_gateway import read_calls
from mleredux_gateway.secrets import run_token
from mleredux_rollout import check_rollout
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.plans import plan_of
from mleredux_testing.pytest_plugin import skip_or_fail
from mleredux_testing.toys import TOY_PLUGIN

pytestmark = pytest.mark.docker

CALLS = 12
"""Maximum number of calls of the first agent; it requests more."""
MADE_HERE = "mleredux/debian-python:trixie"
PLUGIN = """
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent

@hookimpl
def mleredux_register_agents():
    yield Agent(
        id="prober", title="Tries everything", command=("python", "-c", {script!r}), network="gateway",
        options={{"targets": [], "other_token": "", "calls": 0}},
    )
"""


@dataclass
class Probed:
    """A finished run, its agent's observations, and its container as described by the engine."""

    run: Run
    token: str
    seen: dict[str, Any]
    container: dict[str, Any]
    image_history: str


def until(there: Callable[[], Any], seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A server on every address of this machine."""
    with socket.create_server(("0.0.0.0", 0), backlog=50) as server:
        yield server.getsockname()[1]


def targets(port: int, upstream: ScriptedLlm) -> list[str]:
    """Everything that an agent might try to reach, and must not."""
    addresses = [a.address for many in psutil.net_if_addrs().values() for a in many if a.family == socket.AF_INET]
    hosts = {*addresses, "localhost", "host.docker.internal", *(f"172.{net}.0.1" for net in range(17, 20))}
    beyond = ["169.254.169.254:80", "192.0.2.1:443", "[fd00:ec2::254]:80", "2001:db8::1:443", "127.0.0.11:53"]
    return [*(f"{host}:{port}" for host in sorted(hosts)), upstream.url.removeprefix("http://"), *beyond]


@pytest.fixture(scope="module")
def probed(
    docker_engine: None,
    upstream: ScriptedLlm,
    planted_key: str,
    config_text: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Probed]]:
    from mleredux_containers import base_image
    from mleredux_sandbox_docker.engine import connect, find_image

    home = tmp_path_factory.mktemp("probed")
    script = (Path(__file__).parent / "probing_agent.py").read_text()
    (home / "prober.py").write_text(PLUGIN.format(script=script))
    (home / "gateway.toml").write_text(config_text.format(url=upstream.url))
    client = connect()
    with pytest.MonkeyPatch.context() as patch, listening() as port:
        if "MLEREDUX_BASE_IMAGE" not in os.environ and find_image(client, base_image()) is None:
            patch.setenv("MLEREDUX_BASE_IMAGE", MADE_HERE)
        if find_image(client, base_image()) is None:
            skip_or_fail("docker", f"there is no base image {base_image()} (make one with `.ci/base-image`)")
        patch.setenv("MLEREDUX_GATEWAY_CONFIG", str(home / "gateway.toml"))
        patch.setenv("PLANTED_KEY", planted_key)
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        catalogue = Catalogue(load=(TOY_PLUGIN, str(home / "prober.py")))
        set_current(catalogue)
        store, data = RunStore(home / "runs"), DataStore(home / "data")

        def new(other: Run | None, calls: int | None) -> Run:
            token = run_token(installation_salt(), other.id) if other else "sk-none"
            options = {"targets": targets(port, upstream), "other_token": token, "calls": CALLS}
            limits = {"time_limit": 240, "memory_mb": 256, "cpus": 0.5, "llm_calls": calls}
            asked = plan_of(catalogue, "toy", "prober", sandbox="docker", limits=limits, options=options)
            return store.create(asked, data.path)

        second = new(None, None)
        first = new(second, CALLS)
        runs = [first, second]
        pipeline = Pipeline(store, catalogue, data, jobs=2)
        worker = threading.Thread(target=pipeline.execute, args=(runs,))
        worker.start()
        try:
            until(lambda: all((run.output_dir / "ready").exists() or run.state.final for run in runs))
            described = [_described(client, run) for run in runs]
            history = json.dumps([client.history(item["Image"]) for item in described])
            # From here on, the verdicts can't come from the answers: they are deleted.
            private = data.path / "toy" / "prepared" / "private"
            away = private.rename(home / "private-away")
            for run in runs:
                (run.output_dir / "answers-are-away").touch()
            until(lambda: all((run.output_dir / "validated").exists() or run.state.final for run in runs))
            away.rename(private)
            for run in runs:
                (run.output_dir / "answers-are-back").touch()
        except BaseException:
            pipeline.cancel()
            raise
        finally:
            worker.join(120)
        for run in runs:
            assert run.state is State.DONE, (run.message, run.agent_log.read_text(errors="replace")[-2000:])
        yield [
            Probed(
                run,
                run_token(installation_salt(), run.id),
                json.loads((run.output_dir / "seen.json").read_text()),
                container,
                history,
            )
            for run, container in zip(runs, described, strict=True)
        ]
    client.close()
    set_current(None)


def _described(client: Any, run: Run) -> dict[str, Any]:
    (item,) = client.containers(filters={"label": f"mleredux.run={run.id}"})
    described: dict[str, Any] = client.inspect_container(item["Id"])
    return described


def test_the_gateway_serves_both_protocols_and_streams(probed):
    for one in probed:
        status, body = one.seen["hello"]
        assert status == 200 and "Hello." in body
        assert one.seen["claude"].startswith("Hello.")
        times = one.seen["stream"]
        assert len(times) > 20 and times[-1] - times[0] > 0.5, "it came in one piece"
        assert one.seen["environment"]["OPENAI_BASE_URL"] == "http://localhost:4000/v1"


def test_nothing_else_is_reached(probed):
    for one in probed:
        assert one.seen["interfaces"] == ["lo"] and one.seen["routes"] == []
        assert "connected" not in one.seen["targets"].values(), one.seen["targets"]
        assert "sent" not in one.seen["datagrams"]
        assert one.seen["name"] == "gaierror", "names were looked up"
        networks = one.container["NetworkSettings"]["Networks"]
        assert list(networks) == ["none"] and not networks["none"]["IPAddress"]
        assert not [name for name in one.seen["sockets"] if "docker" in name]


def test_the_same_targets_respond_with_a_network(upstream):
    """Otherwise the test above would prove nothing."""
    with listening() as port:
        answered = []
        for target in targets(port, upstream):
            host, _, number = target.rpartition(":")
            if re.fullmatch(r"[0-9.]+", host) and not host.startswith(("169.254.", "192.0.2.", "127.0.0.11")):
                with contextlib.suppress(OSError):
                    socket.create_connection((host, int(number)), timeout=2).close()
                    answered.append(target)
        assert len(answered) >= 3, "loopback, an address of this machine, and the upstream"


def test_keys_of_other_runs_are_refused(probed):
    first, second = probed
    assert first.token != second.token
    assert first.seen["wrong_keys"] == second.seen["wrong_keys"] == [401, 401, 401]


def test_a_budget_holds_inside_too_and_does_not_affect_the_other_run(probed):
    first, second = probed
    spent = 5  # before: hello, claude, echo, leak, a stream
    assert sorted(first.seen["to_the_end"]) == [200] * (CALLS - spent) + [403] * spent
    status, body = first.seen["after_the_end"]
    assert status == 403 and json.loads(body)["error"]["type"] == "budget_exhausted"
    assert second.seen["to_the_end"] == [200] * CALLS
    ledger = first.run.report.ledger
    assert (ledger.llm.calls, ledger.llm.refused, ledger.llm.exhausted) == (CALLS, spent + 1, "llm_calls")
    assert ledger.llm_calls == CALLS and ledger.network == "gateway" and ledger.hosts == ledger.llm.hosts
    assert second.run.report.ledger.llm.exhausted is None


def test_each_run_s_manifest_has_a_record_of_its_own_calls(probed, upstream):
    for one in probed:
        calls = [call for call in read_calls(one.run.path / "llm" / "calls.jsonl") if not call.get("refused")]
        assert len(calls) == one.run.report.ledger.llm.calls
        asked = [call for call in upstream.calls if call.conversation == one.run.id]
        assert len(asked) == len(calls)
        listed = {artifact.path: artifact for artifact in one.run.manifest.artifacts}
        assert listed["llm/calls.jsonl"].producer == "gateway" and listed["llm/calls.jsonl"].sha256


def test_the_rollout_of_an_agent_that_writes_none_is_created_from_its_calls(probed):
    for one in probed:
        assert check_rollout(one.run.path / "rollout.json") == []
        rollout = one.run.rollout
        assert rollout.extra["mleredux"]["made_from"] == "llm calls"
        assert rollout.extra["mleredux"]["score"] == 1.0
        said = [step for step in rollout.steps if step.source == "agent"]
        assert len(said) == sum(call["status"] == 200 for call in _answered(one.run))
        assert rollout.final_metrics.total_cost_usd == pytest.approx(one.run.report.ledger.llm.cost_usd)


def _answered(run: Run) -> list[dict[str, Any]]:
    return [call for call in read_calls(run.path / "llm" / "calls.jsonl") if not call.get("refused")]


def test_the_planted_key_and_the_token_are_not_stored(probed, planted_key):
    for one in probed:
        assert "*****" in one.seen["echo"][1] and "*****" in one.seen["leak"][1]
        kept = {path: path.read_bytes() for path in one.run.path.rglob("*") if path.is_file()}
        assert {"calls.jsonl", "rollout.json", "events.jsonl", "artifacts.json", "agent.log"} <= {p.name for p in kept}
        for path, content in kept.items():
            assert planted_key.encode() not in content, path
            assert one.token.encode() not in content, path
        assert b"my key is " + b"*" * len(one.token) + b"\n" in one.run.agent_log.read_bytes()
        assert b"The key is *****" in (one.run.path / "llm" / "calls.jsonl").read_bytes()
        assert planted_key not in json.dumps(one.container)
        assert planted_key not in one.image_history and one.token not in one.image_history
        assert planted_key not in json.dumps(one.seen["environment"])


def test_validation_reports_the_same_for_a_perfect_guess_and_its_opposite_without_answers(probed):
    for one in probed:
        assert len(set(one.seen["verdicts"])) == 1, "a verdict distinguishes good from bad"
        assert json.loads(one.seen["verdicts"][0])["valid"] is True
        assert one.run.report.score == 1.0, "the answers were available again for grading"
