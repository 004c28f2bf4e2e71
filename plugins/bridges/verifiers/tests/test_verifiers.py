"""The taskset in verifiers' own environment: `vf-eval` with the scripted model, which it asks for streams."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux import Run
from mleredux.plugin.events import Warned
from mleredux_scripted_llm import ScriptedLlm
from mleredux_testing.pytest_plugin import skip_or_fail

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'


@pytest.fixture(scope="module")
def programs() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux-verifiers" / "bin"
    if not folder.is_dir():
        skip_or_fail("validators", f"there is no verifiers in {folder.parent} (`.ci/validators` gets it)")
    return folder


def evaluated(programs: Path, home: Path, command: str, **options: str) -> dict[str, Any]:
    """The trace of a rollout whose model runs a command."""
    tools = [{"name": "run_command", "arguments": {"command": command}}]
    scenario = {"rules": [{"when": {"tools": ["run_command"]}, "times": 1, "reply": {"tools": tools}}]}
    scenario["rules"].append({"reply": {"text": "Done."}})
    task = {"sandbox": "process", "runs_dir": str(home / "runs"), "data_dir": str(home / "data"), **options}
    words = [word for name, value in task.items() for word in (f"--env.taskset.task.{name}", value)]
    words += [
        "--env.agent.harness.id",
        "null",
        "--env.agent.runtime.type",
        "subprocess",
        "--env.taskset.tasks",
        '["wine"]',
    ]
    out = home / f"out-{len(list(home.iterdir()))}"
    with ScriptedLlm(scenario) as llm:
        words += ["--client.base-url", f"{llm.url}/v1", "-o", str(out)]
        ended = subprocess.run(
            [programs / "vf-eval", "mleredux-bridge-verifiers", "-m", "scripted", "--no-push", "--no-rich", *words],
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "PRIME_API_KEY": "none", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        )
    (file,) = out.glob("*/traces.jsonl")
    (episode,) = (json.loads(line) for line in file.read_text().splitlines())
    assert not episode["errors"], ended.stdout + ended.stderr
    trace: dict[str, Any] = episode["traces"][0]
    return trace


def test_the_reward_is_the_score_of_any_run_and_the_model_never_sees_it(programs: Path, tmp_path: Path) -> None:
    trace = evaluated(programs, tmp_path, COPY)
    sample = tmp_path / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    expected = mleredux.grade(sample, "wine", data_dir=tmp_path / "data").score
    assert expected is not None
    assert abs(trace["rewards"]["reward"]["score"] + expected) < 1e-12  # log loss: lower is better
    assert trace["metrics"]["valid"] == 1.0
    answers = (sample.parents[1] / "private" / "answers.csv").read_text().splitlines()[1:6]
    shown = json.dumps(trace["nodes"])
    assert str(expected) not in shown and not any(row in shown for row in answers)
    (path,) = (tmp_path / "runs").glob("2*")
    run = Run(path)
    assert (run.spec.agent, str(run.state)) == ("verifiers", "done")
    assert any(isinstance(event.payload, Warned) and "given out" in event.payload.message for event in run.events())


def test_an_invalid_submission_gets_what_the_options_say(programs: Path, tmp_path: Path) -> None:
    trace = evaluated(programs, tmp_path, "echo id > submission.csv", reward="percentile", invalid="-7")
    assert (trace["rewards"]["reward"]["score"], trace["metrics"]["valid"]) == (-7.0, 0.0)
