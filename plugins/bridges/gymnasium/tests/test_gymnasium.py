"""Tasks through the Gymnasium bridge: the checker accepts the environment, and its reward is the score of any run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import mleredux
import psutil
import pytest
from gymnasium.utils.env_checker import check_env
from mleredux import MlereduxError
from mleredux.plugin.artifact import RunStore
from mleredux_agents import rule_of
from mleredux_bridge_gymnasium.environment import PYTHON, SHELL, SUBMIT, TaskEnvironment

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gymnasium")


@pytest.fixture
def places(home: Path) -> dict[str, Any]:
    return {"sandbox": "process", "runs_dir": home / "runs", "data_dir": home / "data"}


@pytest.fixture
def env(places: dict[str, Any]) -> Iterator[TaskEnvironment]:
    found = TaskEnvironment("wine", reward="score", invalid=-9.0, **places)
    yield found
    found.close()


def played(env: gymnasium.Env[Any, Any], *actions: tuple[int, str]) -> tuple[float, dict[str, Any], list[str]]:
    env.reset(seed=0)
    texts = []
    for kind, text in actions:
        observation, reward, terminated, truncated, info = env.step({"kind": kind, "text": text})
        assert env.observation_space.contains(observation)
        assert terminated == (kind == SUBMIT) and not truncated
        texts.append(observation["text"])
    return float(reward), info, texts


def test_gymnasium_accepts_the_environment(env: TaskEnvironment) -> None:
    check_env(env, skip_render_check=True)


def test_the_reward_is_the_score_of_any_run_on_the_same_submission(env: TaskEnvironment, home: Path) -> None:
    reward, info, texts = played(env, (PYTHON, "print(6 * 7)"), (SHELL, COPY), (SUBMIT, ""))
    sample = home / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    report = mleredux.grade(sample, "wine", data_dir=home / "data")
    assert report.score is not None
    assert abs(reward + report.score) < 1e-12  # log loss: lower is better
    assert texts[0] == "42\n"
    run = env.run
    assert (info["valid"], run.spec.agent, str(run.state)) == (True, "gymnasium", "done")
    assert (info["run"], info["score"], info["medal"]) == (run.id, run.score, run.medal)
    assert run.report is not None and (run.report.verdict.status, run.report.verdict.trusted) == ("score given", True)
    assert [row["verdict"] for row in RunStore(home / "runs").rows() if row["id"] == run.id] == ["score given"]
    assert run.rollout is not None
    assert [call.function_name for step in run.rollout.steps for call in step.tool_calls or ()] == ["python", "sh"]


def test_a_validation_scores_training_rows_and_reveals_nothing_of_the_test(places: dict[str, Any], home: Path) -> None:
    env = TaskEnvironment("wine", reward="validation", **places)
    reward, info, texts = played(env, (SHELL, "cat $MLEREDUX_DATA_DIR/*.csv"), (SHELL, COPY), (SUBMIT, ""))
    run = env.run
    env.close()
    assert run.report is not None and run.report.score is not None and info["valid"]
    assert run.spec.task == "wine+shadow"
    assert 0.1 < reward == rule_of("standing").of(run) < 0.4 and run.report.gold_threshold is None
    assert run.report.verdict.status == "not checked"

    def rows(task: str, file: str) -> set[str]:
        lines = (home / "data" / task / "prepared" / file).read_text().splitlines()[1:]
        return {line.partition(",")[0] for line in lines}

    parts = [rows("wine+shadow", f"public/{name}.csv") for name in ("train", "test")]
    assert rows("wine", "public/train.csv") == parts[0] | parts[1] and not parts[0] & parts[1]
    assert rows("wine+shadow", "private/answers.csv") == parts[1]
    answers = (home / "data" / "wine+shadow" / "prepared" / "private" / "answers.csv").read_text().splitlines()[1:]
    assert not any(row in texts[0] for row in answers)


def test_a_task_without_a_test_table_has_no_validation(places: dict[str, Any]) -> None:
    env = TaskEnvironment("digits-code", reward="validation", **places)
    with pytest.raises(MlereduxError, match="No rows can be held out from digits-code"):
        env.reset(seed=0)


def test_the_use_of_techniques_is_a_reward(places: dict[str, Any]) -> None:
    """A switch is measured: that of a copy of the sample gains nothing; without one, there is no reward."""
    env = TaskEnvironment("wine", reward="mleredux_techniques.rewards:technique_use", invalid=-1.0, **places)
    code = (
        "import os, shutil\nwithout = os.environ.get('MLEREDUX_WITHOUT') == 'scaling'\n"
        "folder, file = os.environ['MLEREDUX_DATA_DIR'], os.environ.get('MLEREDUX_SUBMISSION', 'submission.csv')\n"
        "shutil.copyfile(folder + '/sample_submission.csv', file)"
    )
    rewards = []
    for language, text in ((PYTHON, code), (SHELL, "true")):
        reward, info, _ = played(env, (language, text), (SHELL, COPY), (SUBMIT, ""))
        assert info["valid"]
        rewards.append(reward)
    env.close()
    assert rewards == [0.0, -1.0]


def test_an_episode_is_truncated_at_the_time_limit_and_graded(places: dict[str, Any]) -> None:
    env = TaskEnvironment("wine", reward=lambda run: float(run.report is not None), time_limit=4, **places)
    env.reset(seed=1)
    assert env.step({"kind": SHELL, "text": COPY})[1] == 0.0
    _, reward, terminated, truncated, _ = env.step({"kind": SHELL, "text": "sleep 60"})
    env.close()
    assert (reward, terminated, truncated) == (1.0, False, True)


def test_texts_are_unicode_in_actions_and_observations(places: dict[str, Any]) -> None:
    env = TaskEnvironment("wine", reward="valid", **places)
    text = "é🙂 中文 \u200f"
    _, info, texts = played(env, (PYTHON, f"print({text!r})"), (SHELL, f"printf %s '{text}'"), (SUBMIT, ""))
    assert texts[:2] == [f"{text}\n", text] and "score" not in info
    assert env.run.report is not None and env.run.report.verdict.status == "not checked"
    env.close()
    assert env.action_space.contains({"kind": 0, "text": text})
    assert not env.action_space.contains({"kind": 0, "text": "\ud800"})
    flat = gymnasium.spaces.flatten(env.observation_space, {"failed": 0, "text": text})
    assert gymnasium.spaces.unflatten(env.observation_space, flat)["text"] == "?? ?? ?"


def test_what_does_not_exist_is_refused_in_a_sentence() -> None:
    with pytest.raises(MlereduxError, match="There is no reward 'luck'"):
        TaskEnvironment("wine", reward="luck")
    with pytest.raises(MlereduxError, match="has no bound"):
        TaskEnvironment("wine", reward="score")
    with pytest.raises(MlereduxError, match="There is no task"):
        TaskEnvironment("whine")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SHELL, "sleep 600"),
        (SHELL, "kill -STOP $PPID; sleep 600"),
        (SHELL, "setsid sh -c 'trap \"\" TERM INT HUP; sleep 600' & exec sleep 600"),
        (PYTHON, "import subprocess; subprocess.run(['sleep', '600'])"),
        (PYTHON, "import os; os.closerange(0, 99); os.fork() or os.setsid(); os.execvp('sleep', ['sleep', '600'])"),
    ],
    ids=["heeds", "ignores", "leaves its session", "code", "code without files"],
)
def test_a_killed_program_leaves_no_agent_that_heeds_or_ignores_sigterm(
    places: dict[str, Any], kind: int, text: str
) -> None:
    work = (
        "import sys, time; from mleredux_bridge_gymnasium.environment import TaskEnvironment\n"
        "places = {'runs_dir': sys.argv[1], 'data_dir': sys.argv[2], 'limits': {'grace': 1}}\n"
        "env = TaskEnvironment('wine', sandbox='process', **places)\n"
        "env.reset(seed=77); print(env.run.path, flush=True)\n"
        "env.step({'kind': int(sys.argv[3]), 'text': sys.argv[4]})"
    )
    words = (sys.executable, "-c", work, str(places["runs_dir"]), str(places["data_dir"]), str(kind), text)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        below: list[psutil.Process] = []
        until = time.monotonic() + 60
        while not any("sleep" in process.name() for process in below) and time.monotonic() < until:
            time.sleep(0.1)
            below = psutil.Process(program.pid).children(recursive=True)
        assert any("sleep" in process.name() for process in below)
        program.kill()
    _, left = psutil.wait_procs(below, 30)
    assert not left
