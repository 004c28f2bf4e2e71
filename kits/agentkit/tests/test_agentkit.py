"""The kit of agents inside a sandbox: alone in a process, over real sockets, with real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux_agentkit as kit
import pytest
from mleredux_agentkit import NoMoreCalls, PromptTooLong, Task, Trajectory, complete, run
from mleredux_rollout import check_rollout, read_rollout
from mleredux_scripted_llm import ScriptedLlm

ROOT = Path(__file__).parents[3]


def task_in(folder: Path, **variables: str) -> Task:
    for name in ("task", "output"):
        (folder / name).mkdir(exist_ok=True)
    return Task({"MLEREDUX_TASK_DIR": str(folder / "task"), "MLEREDUX_OUTPUT_DIR": str(folder / "output"), **variables})


def test_it_needs_the_standard_library_alone() -> None:
    code = "import sys; before = set(sys.modules); import mleredux_agentkit; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout
    own = {name.partition(".")[0] for name in loaded.split()} - set(sys.stdlib_module_names)
    assert own == {"mleredux_agentkit"}


def test_everything_of_it_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "agentkit.md").read_text(encoding="utf-8")
    assert [name for name in kit.__all__ if f"`{name}" not in page] == []


@pytest.mark.parametrize(("limit", "reserve"), [(2, 0.4), (10, 2), (1000, 30), (86_400, 60)])
def test_work_ends_before_the_sandbox_does(limit: float, reserve: float, tmp_path: Path) -> None:
    end = time.time() + limit
    task = task_in(tmp_path, MLEREDUX_TIME_LIMIT=str(limit), MLEREDUX_DEADLINE=str(end))
    assert task.deadline == pytest.approx(end - reserve)
    assert task_in(tmp_path, MLEREDUX_DEADLINE=str(end)).deadline == pytest.approx(end - reserve, abs=0.1)


def test_a_task_without_files_has_no_facts_and_says_so_in_the_prompt(tmp_path: Path) -> None:
    task = task_in(tmp_path)
    assert (task.facts, task.sample, task.notice, task.validate()) == ({}, None, None, "")
    (task.task_dir / "description.md").write_text("Tell digits apart.")
    assert task.prompt("Hello.").startswith("Hello.\n\n(instructions.md can't be read") and "digits" in task.prompt()
    (task.task_dir / "task.json").write_text("[1]")
    assert task_in(tmp_path).facts == {}


def test_options_of_the_run_are_over_defaults(tmp_path: Path) -> None:
    env = {"MLEREDUX_TASK_DIR": str(tmp_path), "MLEREDUX_OPTIONS": '{"a": 2}'}
    assert Task(env, options={"a": 1, "b": 1}).options == {"a": 2, "b": 1}


def test_its_trajectory_is_a_valid_rollout_after_each_step(tmp_path: Path) -> None:
    trajectory = Trajectory(task_in(tmp_path), "mine", llm=True)
    answer = kit.Answer("I look.\ud800", 10, 2)
    assert trajectory.act("I look.", "sh", {"command": "ls"}, "x" * 50_000, answer=answer, is_buggy=False) == 2
    assert check_rollout(trajectory.path) == []
    assert trajectory.say("Done.", answer=answer, validation_metric=float("nan")) == 3
    assert check_rollout(trajectory.path) == []
    rollout = read_rollout(trajectory.path)
    assert rollout.final_metrics is not None and rollout.final_metrics.total_prompt_tokens == 20
    assert (
        rollout.steps[1].observation is not None and len(str(rollout.steps[1].observation.results[0].content)) < 21_000
    )


UNTIL = """
import sys, time
from mleredux_agentkit import exit_now, work_until
def work():
    print("ready", flush=True)
    while True:
        try:
            time.sleep(30)
        except BaseException:
            pass
ended = work_until(time.time() + float(sys.argv[1]), {work})
print(ended.stopped_by, (ended.error or "").strip().splitlines()[-1:], flush=True)
exit_now(3)
"""


def until(work: str, seconds: float) -> subprocess.Popen[str]:
    program = UNTIL.replace("{work}", work)
    return subprocess.Popen([sys.executable, "-c", program, str(seconds)], stdout=subprocess.PIPE, text=True)


def test_work_that_catches_everything_is_stopped_at_the_deadline() -> None:
    said, _ = (process := until("work", 0.5)).communicate(timeout=25)
    assert said == "ready\nthe deadline []\n" and process.returncode == 3


def test_work_that_catches_everything_is_stopped_by_sigterm() -> None:
    process = until("work", 60)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=25)
    assert said == "SIGTERM []\n" and process.returncode == 3


def test_work_that_fails_is_told_with_its_error() -> None:
    said, _ = until("lambda: 1 / 0", 60).communicate(timeout=25)
    assert said == "None ['ZeroDivisionError: division by zero']\n"


def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    ended = run("sleep 60 & echo $! >pid; echo on; sleep 60", cwd=tmp_path, timeout=1)
    assert ended == (None, "on\n")
    until_gone = time.monotonic() + 20
    while Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cmdline").exists() and time.monotonic() < until_gone:
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_long_output_is_shortened_in_its_middle() -> None:
    ended = run("printf 'a%.0s' $(seq 3000); printf z; exit 7", limit=1000)
    assert ended.code == 7 and ended.output.endswith("z") and len(ended.output) < 1100


RULES: dict[str, Any] = {
    "rules": [
        {"when": {"last": "refuse"}, "reply": {"error": {"status": 403, "message": "budget_exhausted"}}},
        {"when": {"last": "long"}, "reply": {"error": {"status": 400, "message": "context_length exceeded"}}},
        {"reply": {"text": "Yes.", "usage": {"prompt": 7, "completion": 5}}},
    ]
}


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    with ScriptedLlm(RULES) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.mark.parametrize("model", ["gpt-4.1", "claude-opus-5", "o4-mini"])
def test_models_are_asked_by_their_own_protocols(model: str, llm: ScriptedLlm) -> None:
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Is it?"}]
    assert complete(model, messages, max_tokens=9, temperature=0.5) == ("Yes.", 7, 5)
    (call,) = llm.calls
    assert call.body["model"] == model and "Be short." in json.dumps(call.body)


def test_what_will_not_be_answered_is_not_asked_again(llm: ScriptedLlm) -> None:
    with pytest.raises(NoMoreCalls, match="budget_exhausted"):
        complete("gpt-4.1", [{"role": "user", "content": "refuse"}])
    with pytest.raises(PromptTooLong):
        complete("gpt-4.1", [{"role": "user", "content": "too long"}])
    assert len(llm.calls) == 2
