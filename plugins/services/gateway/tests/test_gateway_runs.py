"""The real program with an agent that calls a model: metered, killed, resumed, reported."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from mleredux._core.store import Run, RunStore
from mleredux_rollout import check_rollout
from mleredux_support.server import ServerProcess
from mleredux_testing.launches import wait_for
from mleredux_testing.toys import TOY_PLUGIN

PLUGIN = """
from mleredux.errors import MlereduxError
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent

def configure(options):
    if not options["greeting"]:
        raise MlereduxError("Option greeting is missing.")
    return greeter

asker = Agent(id="asker", title="Asks until it may not", command=("python", "-c", {script!r}), network="gateway")
greeter = asker.model_copy(update={{"id": "greeter", "options": {{"greeting": ""}}, "configure": configure}})

@hookimpl
def mleredux_register_agents():
    return [asker, greeter]
"""
SCRIPT = """
import json, os, pathlib, time, urllib.error, urllib.request
body = json.dumps({"model": "priced", "messages": [{"role": "user", "content": "hello"}]}).encode()
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
odd = json.dumps({**json.loads(body), "plugins": [{"id": "web"}]}).encode()
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", odd, headers))
except urllib.error.HTTPError as error:
    print(error.code, flush=True)
data, status = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"]), 0
while status != 403:
    try:
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
    except OSError:
        status = -1  # while the program is away
    print(status, flush=True)
    time.sleep(0.2)
sample = (data / "sample_submission.csv").read_text()
pathlib.Path(os.environ["MLEREDUX_SUBMISSION"]).write_text(sample)
"""


def program(home: Path, *arguments: str) -> subprocess.Popen[str]:
    (home / "asker.py").write_text(PLUGIN.format(script=SCRIPT))
    start = [sys.executable, "-m", "mleredux", "-p", TOY_PLUGIN, "-p", str(home / "asker.py"), "run"]
    folders = ["--runs-dir", str(home / "runs"), "--data-dir", str(home / "data")]
    return subprocess.Popen([*start, *arguments, *folders, "--json"], stdout=subprocess.PIPE, text=True)


def test_after_kill_and_resume_the_agent_continues_with_its_remaining_budget(configured, upstream, tmp_path):
    before = len(upstream.calls)
    first = program(tmp_path, "toy", "--agent", "asker", "--llm-calls", "8", "--llm-cost", "1")
    try:
        (log,) = wait_for(lambda: list((tmp_path / "runs").glob("*/logs/agent.log")), 60)
        assert wait_for(lambda: log.read_text().count("200") >= 3, 60)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert first.stdout is not None
        first.stdout.close()
    run_id = log.parents[1].name
    assert wait_for(lambda: "-1" in log.read_text(), 60)
    second = program(tmp_path, "--resume", run_id)
    said, _ = second.communicate(timeout=120)
    record = json.loads(said)
    assert record["status"] == "done", record
    run = Run(Path(record["path"]))
    llm = record["report"]["ledger"]["llm"]
    assert llm["calls"] == len(upstream.calls) - before == 8
    assert (llm["exhausted"], llm["refused"], llm["refused_fields"]) == ("llm_calls", 2, {"plugins": 1})
    assert 8 * 0.003 - 1e-9 <= llm["cost_usd"] <= 1, "a call interrupted by the kill is charged what was reserved"
    assert run.spec.limits.llm_cost_usd == 1
    assert log.read_text().split().count("403") == 1
    kinds = [event.data.get("status") for event in run.events() if event.type == "gateway"]
    assert kinds == ["exhausted", "closed"]
    page = (run.path / "report.html").read_text()
    assert re.search(r"LLM budget exhausted</\w+>\s*<[^>]*>\s*llm_calls", page), "the page shows it"
    assert re.search(r"LLM requests refused</\w+>\s*(?:<[^>]*>\s*)+plugins \(1\)", page)
    assert llm["price_tables"][0].startswith("gateway.toml (sha256 ") and llm["price_tables"][0] in page
    assert check_rollout(run.path / "rollout.json") == []
    assert run.rollout is not None and run.rollout.final_metrics.extra["llm_calls"] == 8


_BUDGETS = ("llm-calls", "llm-tokens", "llm-cost")


@pytest.mark.parametrize(
    ("budget", "limit"),
    [("llm-calls", "2"), ("llm-tokens", "60"), ("llm-cost", "0.004"), *zip(_BUDGETS, "000", strict=True)],
)
def test_a_spent_budget_ends_the_agent_if_asked_to(configured, tmp_path, monkeypatch, budget, limit):
    endless = SCRIPT.replace("while status != 403", "while True")
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", endless)
    ended = program(tmp_path, "toy", "--agent", "asker", f"--{budget}", limit, "--on-budget", "stop")
    said, _ = ended.communicate(timeout=120)
    record = json.loads(said)
    assert (record["status"], record["cause"]) == ("done", None), record
    name = {"llm-cost": "llm_cost_usd"}.get(budget, budget.replace("-", "_"))
    assert record["report"]["limit"] == record["report"]["ledger"]["llm"]["exhausted"] == name
    run = Run(Path(record["path"]))
    (reached,) = (event.data for event in run.events() if event.type == "limit")
    assert reached["message"] == f"The agent was stopped: its budget {name} is used up."
    assert run.outcome.signal == signal.SIGTERM and run.outcome.seconds < 60


@pytest.mark.parametrize("place", ["server", "experiment on a server", "experiment"])
def test_budgets_spent_from_the_start_end_agents_on_a_server_and_in_experiments(
    configured, upstream, tmp_path, monkeypatch, place
):
    (tmp_path / "asker.py").write_text(PLUGIN.format(script=SCRIPT.replace("while status != 403", "while True")))
    monkeypatch.setenv("MLEREDUX_PLUGINS", f"{TOY_PLUGIN},{tmp_path / 'asker.py'}")
    names, calls = ("llm_calls", "llm_cost_usd", "llm_tokens"), len(upstream.calls)
    arm = """[arms.{0}]\nagent = "asker"\nsandbox = "process"\n[arms.{0}.limits]\non_budget = "stop"
        cpus = 0.5\nmemory_mb = 512\n{0} = 0\n"""
    text = '[experiment]\nname = "spent"\ntasks = ["toy"]\nseeds = [1]\n' + "".join(map(arm.format, names))
    plan = tomllib.loads(text)
    folders = ("--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data"))
    if place == "experiment":
        (tmp_path / "plan.toml").write_text(text)
        start = [sys.executable, "-m", "mleredux", "experiment", "run", str(tmp_path / "plan.toml"), *folders, "--json"]
        subprocess.run(start, check=True, timeout=240)
    else:
        with ServerProcess(tmp_path / "runs", *folders[2:], "--workers", "3") as server:
            headers = {"Authorization": f"Bearer {server.token}"}
            with httpx.Client(base_url=f"{server.url}/v1", headers=headers, timeout=60) as client:
                bodies = (
                    [{"plan": plan}] if place != "server" else [{**arm, "task": "toy"} for arm in plan["arms"].values()]
                )
                for body in bodies:
                    answer = client.post("/runs" if place == "server" else "/experiments", json=body)
                    assert answer.status_code == 201, answer.text
                runs = [run["id"] for run in client.get("/runs").json()["items"]]
                for run_id in runs:
                    assert wait_for(lambda: _ended(client.get(f"/runs/{run_id}").json()), 240)  # noqa: B023
    store = RunStore(tmp_path / "runs")
    ended = [store.get(run_id) for run_id in store.ids()]
    assert sorted(run.outcome.limit for run in ended) == sorted(names)
    for run in ended:
        assert (run.state, run.cause, run.outcome.signal) == ("done", None, signal.SIGTERM), run.message
        assert run.report.limit == run.report.ledger.llm.exhausted == run.outcome.limit
        assert run.outcome.message == f"The agent was stopped: its budget {run.outcome.limit} is used up."
    assert len(upstream.calls) == calls, "no call reached the provider"


CALL = """
import json, os, pathlib, time, urllib.error, urllib.request
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
def call(text):
    model = "silent" if text == "unanswered" else "priced"
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()
    try:
        urllib.request.urlopen(
            urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
        )
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
"""
OUTAGE = f"""{CALL}
for _ in range(8):
    call("overloaded")
    time.sleep(0.5)
call("hello")
left = json.load(urllib.request.urlopen(os.environ["MLEREDUX_VALIDATE_URL"].replace("validate", "time")))
print("left", left["seconds_left"], flush=True)
sample = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"], "sample_submission.csv").read_text()
pathlib.Path(os.environ["MLEREDUX_SUBMISSION"]).write_text(sample)
time.sleep(60)
"""


def test_the_clock_pauses_while_the_provider_is_down(configured, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", OUTAGE)
    said, _ = program(tmp_path, "toy", "--agent", "asker", "--time-limit", "5s").communicate(timeout=120)
    record = json.loads(said)
    run = Run(Path(record["path"]))
    assert (record["status"], run.outcome.limit) == ("timed_out", "time")
    assert run.agent_log.read_text().count("529") == 8
    assert 4 <= run.outcome.paused_seconds == record["report"]["ledger"]["llm"]["outage_seconds"] <= 5
    assert 5 <= run.outcome.working_seconds <= 6.5, "the limit holds for the working time"
    (left,) = re.findall(r"left (.+)", run.agent_log.read_text())
    assert 3 < float(left) < 5, "the remaining time counts the pause"
    assert "Working time" in (run.path / "report.html").read_text()
    (row,) = RunStore(run.path.parent).rows()
    assert (row["seconds"], row["paused_seconds"]) == (run.outcome.seconds, run.outcome.paused_seconds)
    used = record["report"]["ledger"]["llm"]
    assert row["tokens"] == used["prompt_tokens"] + used["completion_tokens"] > 0


ENDINGS = {
    "after a failed call": "call('hello'); call('overloaded'); time.sleep(1); call('overloaded')",
    "during a call": "threading.Thread(target=call, args=('unanswered',), daemon=True).start(); time.sleep(1)",
    "after both": "threading.Thread(target=call, args=('unanswered',), daemon=True).start(); call('overloaded')",
    "at its limit": "call('overloaded'); time.sleep(60)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_pauses_end_with_the_agent(configured, tmp_path, monkeypatch, ending):
    """Whatever calls do while the run ends, its ledger has the pauses that its clock had."""
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", f"{CALL}\nimport threading\n{ENDINGS[ending]}\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, and never answers
        config = tmp_path / "gateway.toml"
        held = f'base_url = "http://127.0.0.1:{silent.getsockname()[1]}/v1"\n'
        held += 'protocol = "openai"\nkey_env = "PLANTED_KEY"\n'
        held += 'models = ["silent"]\ntimeout = 2\n'
        config.write_text(f"{config.read_text()}\n[upstreams.silent]\n{held}")
        printed, _ = program(tmp_path, "toy", "--agent", "asker", "--time-limit", "3s").communicate(timeout=120)
    record = json.loads(printed)
    run = Run(Path(record["path"]))
    paused = run.outcome.paused_seconds
    assert paused == record["report"]["ledger"]["llm"]["outage_seconds"] == run.report.ledger.llm.outage_seconds
    assert 0 <= paused <= run.outcome.seconds and (paused > 0) == ("overloaded" in ENDINGS[ending])


def test_the_next_agent_of_a_run_gets_no_time_for_outages_before_its_start(configured, tmp_path, monkeypatch):
    """Both programs are killed during the first agent's work, after an outage of three seconds."""
    first_or_next = """
noted = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"], "pid")
if not pathlib.Path(FLAG).exists():
    pathlib.Path(FLAG).touch()
    for _ in range(6):
        call("overloaded")
        time.sleep(0.5)
    call("hello")
    noted.write_text(str(os.getpid()))
    time.sleep(600)
call("overloaded")
time.sleep(1)
call("hello")
left = json.load(urllib.request.urlopen(os.environ["MLEREDUX_VALIDATE_URL"].replace("validate", "time")))
print("left", left["seconds_left"], flush=True)
time.sleep(60)
"""
    code = CALL + first_or_next.replace("FLAG", repr(str(tmp_path / "flag")))
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", code)
    first = program(tmp_path, "toy", "--agent", "asker", "--time-limit", "5s", "--sandbox", "process")
    pids = (tmp_path / "runs").glob
    (noted,) = wait_for(lambda: [path for path in pids("*/output/pid") if path.read_text()], 60)
    first.kill()
    first.communicate()
    os.kill(int(noted.read_text()), signal.SIGKILL)
    record = json.loads(program(tmp_path, "--resume", noted.parents[1].name).communicate(timeout=120)[0])
    run = Run(Path(record["path"]))
    assert (record["status"], run.outcome.limit) == ("timed_out", "time")
    assert 1 <= run.outcome.paused_seconds < 2 and 5 <= run.outcome.working_seconds < 6.5
    (left,) = re.findall(r"left (.+)", run.agent_log.read_text())
    assert float(left) < 5, "the remaining time counts the pauses of this agent"
    assert record["report"]["ledger"]["llm"]["outage_seconds"] >= 4, "the ledger counts those of all agents"


SEARCH = (
    CALL
    + """
data, output = (pathlib.Path(os.environ[f"MLEREDUX_{name}_DIR"]) for name in ("DATA", "OUTPUT"))
def score():
    sample = (data / "dev" / "sample_submission.csv").read_bytes()
    answer = json.load(urllib.request.urlopen(urllib.request.Request(os.environ["MLEREDUX_SCORE_URL"], sample)))
    print("left", answer["left"], answer["score"] is not None, flush=True)
call("hello")
score()
for _ in range(3):
    call("overloaded")
    time.sleep(0.5)
score()
call("hello")
call("hello")
score()
(output / "submission.csv").write_bytes((data / "sample_submission.csv").read_bytes())
"""
)


def test_development_scores_are_counted_through_outages_spent_budgets_and_replays(configured, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", SEARCH)
    words = ("wine", "--agent", "asker", "--dev-score", "2", "--llm-calls", "5")
    record = json.loads(program(tmp_path, *words).communicate(timeout=120)[0])
    again = program(tmp_path, "wine+dev", *words[1:], "--replay", record["id"])
    replayed = json.loads(again.communicate(timeout=120)[0])
    for one in (record, replayed):
        run = Run(Path(one["path"]))
        assert one["status"] == "done", one
        answers = re.findall("left .+", run.agent_log.read_text())
        assert answers == ["left 1 True", "left 0 True", "left 0 False"], run.agent_log.read_text()
        assert one["report"]["ledger"]["dev_scores"] == 2
    assert record["report"]["ledger"]["llm"]["exhausted"] == "llm_calls"
    assert record["report"]["ledger"]["llm"]["outage_seconds"] >= 1


def test_on_a_server_the_clock_pauses_and_development_scores_are_counted(configured, tmp_path, monkeypatch):
    """Two runs at once, which share the provider and its outage."""
    (tmp_path / "asker.py").write_text(PLUGIN.format(script=SEARCH))
    env = {"MLEREDUX_PLUGINS": str(tmp_path / "asker.py"), "MLEREDUX_CPUS": "2"}
    limits = {"dev_scores": 2, "llm_calls": 5, "cpus": 0.5, "memory_mb": 512, "time_limit": 120}
    body = {"task": "wine+dev", "agent": "asker", "sandbox": "process", "limits": limits}
    with ServerProcess(tmp_path / "runs", "--data-dir", str(tmp_path / "data"), "--workers", "2", env=env) as server:
        client = httpx.Client(headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
        sent = [client.post(f"{server.url}/v1/runs", json={**body, "seed": seed}) for seed in range(2)]
        assert [answer.status_code for answer in sent] == [201, 201], sent[0].text
        for run_id in (answer.json()["id"] for answer in sent):
            shown = wait_for(lambda: _ended(client.get(f"{server.url}/v1/runs/{run_id}").json()), 240)  # noqa: B023
            run = Run(tmp_path / "runs" / run_id)
            assert shown and shown["status"] == "done", run.agent_log.read_text()
            answers = re.findall("left .+", run.agent_log.read_text())
            assert answers == ["left 1 True", "left 0 True", "left 0 False"], run.agent_log.read_text()
            used = run.report.ledger.llm
            assert (run.report.ledger.dev_scores, used.exhausted) == (2, "llm_calls")
            assert 1 <= used.outage_seconds == run.outcome.paused_seconds


def _ended(shown):
    return shown if shown["status"] in ("done", "failed", "timed_out", "cancelled") else None


def test_without_an_upstream_the_run_ends_with_the_reason_before_the_agent_starts(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MLEREDUX_GATEWAY_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ended = program(tmp_path, "toy", "--agent", "asker")
    said, _ = ended.communicate(timeout=120)
    record = json.loads(said)
    assert (record["status"], record["cause"]) == ("failed", "environment_broke")
    assert "No language model is configured" in record["message"]
    assert ended.returncode == 4


STEPS = """
import json, os, pathlib, urllib.request
greeting = json.loads(os.environ["MLEREDUX_OPTIONS"])["greeting"]
said = [{"role": "user", "content": greeting + os.environ["MLEREDUX_OUTPUT_DIR"]}]
for step in range(3):
    body = json.dumps({"model": "priced", "messages": said}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    said.append(json.load(urllib.request.urlopen(request))["choices"][0]["message"])
    said.append({"role": "user", "content": f"hello again, {os.environ['MLEREDUX_SEED']}"})
claimed = {"prompt_tokens": 1, "completion_tokens": 2, "cost_usd": 99.0}
steps = [{"step_id": n, "source": "agent", "message": "", "metrics": claimed} for n in (1, 2)]
agent = {"name": "asker", "version": "1"}
trace = {"schema_version": "ATIF-v1.8", "agent": agent, "steps": steps, "final_metrics": {"total_cost_usd": 198.0}}
place = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"], "rollout")
place.mkdir(exist_ok=True)
(place / "trajectory.json").write_text(json.dumps(trace))
sample = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"], "sample_submission.csv").read_text()
pathlib.Path(os.environ["MLEREDUX_SUBMISSION"]).write_text(sample)
"""


def test_a_run_is_repeated_without_a_model(configured, upstream, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", STEPS)
    first = program(tmp_path, "toy", "--agent", "greeter", "-O", "greeting=hello ", "--seed", "5")
    record = json.loads(first.communicate(timeout=120)[0])
    assert record["status"] == "done", record
    asked = len(upstream.calls)
    for name in ("PLANTED_KEY", "MLEREDUX_GATEWAY_CONFIG"):
        monkeypatch.delenv(name)
    told = json.loads(program(tmp_path, "toy", "--agent", "greeter", "--replay", "last").communicate(timeout=120)[0])
    llm = told["report"]["ledger"]["llm"]
    assert (told["status"], told["seed"], llm["repeated"], llm["differences"], llm["cost_usd"]) == ("done", 5, 3, [], 0)
    assert len(upstream.calls) == asked
    assert told["report"]["score"] == record["report"]["score"]
    for one in (record, told):  # the figures of the gateway everywhere, none of those that the agent claims
        spent, rollout = one["report"]["ledger"]["llm"], Run(Path(one["path"])).rollout
        assert rollout is not None and rollout.extra["mleredux"]["made_from"] == "agent"
        used = [step.metrics for step in rollout.steps if step.metrics is not None]
        for name in ("prompt_tokens", "completion_tokens", "cost_usd"):
            assert getattr(rollout.final_metrics, f"total_{name}") == spent[name]
            assert sum(getattr(metrics, name) for metrics in used) == pytest.approx(spent[name])
    assert record["report"]["ledger"]["llm"]["cost_usd"] > 0
    assert f"answers of language models were replayed from {record['id']}, so they cost nothing" in rollout.notes
    assert f"a replay: answered from {record['id']}" in (Path(told["path"]) / "report.html").read_text()
    other = program(tmp_path, "toy", "--agent", "greeter", "--replay", record["id"], "--seed", "6")
    told = json.loads(other.communicate(timeout=120)[0])
    llm = told["report"]["ledger"]["llm"]
    assert told["cause"] == "agent_crashed" and llm["repeated"] == 1
    assert llm["differences"][0].startswith(
        f"Call 2 differs from call 2 of {record['id']} at messages[2].content: it was"
    )
