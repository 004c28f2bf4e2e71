"""Developers' agents, built and run for real: verified once, then let loose on the task."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import Run
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.usage import assert_same_usage

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

GRANTED = ("--pass-env", "TOY_TOKEN")


def mleredux(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "mleredux", *arguments],
        env={**os.environ, "TOY_TOKEN": "set", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_repository_becomes_a_graded_run_with_its_commit_recorded(
    repository: Path, mleredux_home: Path, git: Any
) -> None:
    secret = "tok-0123456789-planted"
    ended = mleredux(
        *("run", "digits", "--agent", f"repo:{repository}@v1", *GRANTED, "-O", "level=7", "--json"),
        *("--runs-dir", str(mleredux_home / "runs")),
        TOY_TOKEN=secret,
    )
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    commit = git(repository, "rev-parse", "v1")
    assert record["agent"] == f"repo:{repository}@{commit}"
    assert record["report"]["valid_submission"] and "-repo-" in record["id"]
    run = Path(record["path"])
    assert (run / "logs" / "smoke" / "agent.log").is_file(), "it passed a smoke run first"
    assert (run / "logs" / "agent.log").read_text() == f"level 7 secret {'*' * len(secret)}\n"
    kept = [path for path in run.rglob("*") if path.is_file()]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    image = json.loads((run / "run.json").read_text())["use"]["image"]
    inspected = subprocess.run(["docker", "image", "inspect", image], capture_output=True, text=True, check=True)
    history = subprocess.run(["docker", "history", "--no-trunc", image], capture_output=True, text=True, check=True)
    assert secret not in inspected.stdout + history.stdout

    again = mleredux(
        *("run", "digits", "--agent", record["agent"], *GRANTED, "--json", "--runs-dir", str(mleredux_home / "runs")),
    )
    second = json.loads(again.stdout)
    assert second["agent"] == record["agent"] and second["status"] == "done"
    stage = next(
        json.loads(line)["data"]
        for line in (Path(second["path"]) / "events.jsonl").read_text().splitlines()
        if '"building"' in line and '"finished"' in line
    )
    assert stage["cached"] and not (Path(second["path"]) / "logs" / "smoke").exists(), "nothing is verified twice"


def test_check_says_what_to_mend_and_keeps_no_run(write_agent: Any, mleredux_home: Path) -> None:
    folder = write_agent("good")
    good = mleredux("agent", "check", *GRANTED, str(folder), "--json")
    said = json.loads(good.stdout)
    assert good.returncode == 0, good.stdout + good.stderr
    assert [step["step"] for step in said["steps"]] == [
        *("source", "manifest", "requests", "requests", "build", "smoke run")
    ]
    assert "need no smoke run" in said["steps"][-1]["message"]
    broken = mleredux(
        "agent", "check", *GRANTED, str(write_agent("broken", **{"solve.py": "raise SystemExit('no idea')\n"}))
    )
    assert broken.returncode == 3
    assert "FAIL smoke run" in broken.stdout and "| no idea" in broken.stdout
    unbuilt = mleredux(
        "agent", "check", *GRANTED, str(write_agent("unbuilt", **{"requirements.txt": "no-such-thing-at-all\n"}))
    )
    assert unbuilt.returncode == 3 and "FAIL build" in unbuilt.stdout and "no-such-thing-at-all" in unbuilt.stdout
    wrong = mleredux("agent", "check", *GRANTED, str(write_agent("wrong", **{"mleredux-agent.toml": "[agent]\n"})))
    assert wrong.returncode == 1 and "agent.id: is missing" in wrong.stderr and "Traceback" not in wrong.stderr
    assert not (mleredux_home / "runs").exists()
    runs = ("--json", "--runs-dir", str(mleredux_home / "runs"))
    record = json.loads(mleredux("run", "digits", "--agent", f"repo:{folder}", *GRANTED, *runs).stdout)
    assert record["status"] == "done" and not (Path(record["path"]) / "logs" / "smoke").exists(), "the check counts"


def test_an_agent_that_fails_its_smoke_run_never_sees_the_task(write_agent: Any, mleredux_home: Path) -> None:
    folder = write_agent("broken", **{"solve.py": "raise SystemExit('no idea')\n"})
    ended = mleredux(
        *("run", "digits", "--agent", f"repo:{folder}", *GRANTED, "--json", "--runs-dir", str(mleredux_home / "runs"))
    )
    record = json.loads(ended.stdout)
    assert (ended.returncode, record["cause"]) == (3, "agent_crashed")
    assert "did not pass its smoke run on wine" in record["message"] and "no idea" in record["message"]
    assert not (Path(record["path"]) / "task").exists()


def test_runs_at_once_share_one_smoke_run(write_agent: Any, mleredux_home: Path) -> None:
    seeds = [word for seed in range(3) for word in ("--seed", str(seed))]
    runs = ("--runs-dir", str(mleredux_home / "runs"), "--jobs", "3")
    ended = mleredux("run", "digits", "--agent", f"repo:{write_agent('shared')}", *GRANTED, *seeds, *runs)
    assert ended.returncode == 0, ended.stderr
    assert len(list((mleredux_home / "runs").glob("*/logs/smoke"))) == 1


REACHING = """\
import urllib.error, urllib.request
for host in ("files.test", "other.test"):
    try:
        print(host, urllib.request.urlopen(f"http://{host}:PORT/").status)
    except urllib.error.HTTPError as error:
        print(host, error.status)
"""


def test_an_agent_reaches_granted_hosts_and_the_ledger_lists_all(
    write_agent: Any, mleredux_home: Path, smart_http: str
) -> None:
    port = smart_http.partition("127.0.0.1:")[2].partition("/")[0]
    folder = write_agent("reaching")
    manifest = (folder / "mleredux-agent.toml").read_text()
    (folder / "mleredux-agent.toml").write_text(f'{manifest}\n[network]\nrun = ["files.test:{port}"]\n')
    (folder / "solve.py").write_text((folder / "solve.py").read_text() + REACHING.replace("PORT", port))
    asked = (
        "run",
        "digits",
        "--agent",
        f"repo:{folder}",
        *GRANTED,
        "--json",
        "--runs-dir",
        str(mleredux_home / "runs"),
    )
    refused = mleredux(*asked)
    assert refused.returncode == 1 and f"--allow-host files.test:{port}" in refused.stderr
    ended = mleredux(*asked, "--allow-host", f"files.test=127.0.0.1:{port}")
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert "other.test 403" in (Path(record["path"]) / "logs" / "agent.log").read_text()
    ledger = record["report"]["ledger"]
    used = {(use["host"], use["allowed"]): use for use in ledger["egress"] if use["phase"] == "run"}
    assert used["files.test", True]["connections"] == 1 and used["files.test", True]["received"] > 0
    assert used["other.test", False]["connections"] == 1
    assert ledger["hosts"] == ["files.test"]


ASKING = """
import urllib.error, urllib.request
body = json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hello."}]}).encode()
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
for _ in range(4):
    try:
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        print(urllib.request.urlopen(urllib.request.Request(url, body, headers)).status)
    except urllib.error.HTTPError as error:
        print(error.status)
"""


def test_budgets_hold_for_the_smoke_run_and_all_places_show_the_runs_own_usage(
    write_agent: Any, mleredux_home: Path
) -> None:
    folder = write_agent("asking")
    manifest = (folder / "mleredux-agent.toml").read_text().replace("[build]", 'network = "gateway"\n\n[build]', 1)
    (folder / "mleredux-agent.toml").write_text(manifest)
    (folder / "solve.py").write_text((folder / "solve.py").read_text() + ASKING)
    usage = {"prompt": 900, "completion": 70, "cached": 300, "reasoning": 50}
    replies: list[Any] = [{"error": {"status": 429}}, {"text": "Hello.", "usage": usage}]
    runs = ("--runs-dir", str(mleredux_home / "runs"))
    with ScriptedLlm({"rules": [{"replies": replies, "repeat": True}]}, key="k") as llm:
        words = ("run", "digits", "--agent", f"repo:{folder}", *GRANTED, "--llm-calls", "3", *runs, "--json")
        ended = mleredux(*words, **llm.environment("k"))
        assert ended.returncode == 0, ended.stderr
        assert len(llm.calls) == 6
        run = Run(Path(json.loads(ended.stdout)["path"]))
        for place, first in (("smoke/agent.log", "429"), ("agent.log", "200")):
            assert (run.logs_dir / place).read_text().split()[-4:] == [first, "200", "200", "403"]
        assert_same_usage(run)
        again = mleredux(*words, "--replay", run.id)
        assert len(llm.calls) == 6, "a model was called"
    assert_same_usage(Run(Path(json.loads(again.stdout)["path"])), replay=run.id)
