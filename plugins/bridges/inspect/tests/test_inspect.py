"""Tasks in Inspect: by the command and the scripted model, by a mock model, and by our agents; what the logs show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import click
import mleredux
import pytest
from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import sandbox
from mleredux import Run
from mleredux_bridge_inspect import sandbox as sandboxes
from mleredux_bridge_inspect.registry import _make_for_cli, make
from mleredux_scripted_llm import ScriptedLlm

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'
SCENARIO = {
    "rules": [
        {"when": {"last": "Not valid"}, "reply": {"tools": [{"name": "bash", "arguments": {"command": COPY}}]}},
        {"when": {"tools": ["validate"]}, "times": 1, "reply": {"tools": [{"name": "validate", "arguments": {}}]}},
        {"reply": {"tools": [{"name": "submit", "arguments": {"answer": "It is written."}}]}},
    ]
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("inspect")
    mleredux.prepare("wine", data_dir=home / "data")
    return home


@pytest.fixture
def places(home: Path) -> dict[str, Any]:
    return {"sandbox": "process", "runs_dir": str(home / "runs"), "data_dir": str(home / "data")}


def sample_score(home: Path) -> float:
    sample = home / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    score = mleredux.grade(sample, "wine", data_dir=home / "data").score
    assert score is not None
    return score


def seen(log: EvalLog) -> str:
    """All that a log says of its sample before the scores."""
    (sample,) = log.samples or ()
    events = [event.model_dump(mode="json") for event in sample.events if event.event != "score"]
    return json.dumps([events, [message.model_dump(mode="json") for message in sample.messages]])


def test_the_command_runs_a_scripted_model_with_the_score_of_any_run(home: Path, places: dict[str, Any]) -> None:
    words = [word for name, value in places.items() for word in ("-T", f"{name}={value}")]
    program = [str(Path(sys.executable).with_name("inspect")), "eval", "mleredux/wine", "--model", "openai/scripted"]
    logs = home / "logs"
    with ScriptedLlm(SCENARIO) as llm:
        ended = subprocess.run(
            [*program, *words, "--log-dir", str(logs), "--display", "plain", "--log-format", "eval"],
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, **llm.environment()},
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (path,) = logs.glob("*.eval")
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task, log.eval.task_registry_name) == ("success", "mleredux/wine", "mleredux/wine")
    (sample,) = log.samples or ()
    scores = sample.scores or {}
    expected = sample_score(home)
    assert abs(scores["score"].as_float() - expected) < 1e-12 and scores["valid"].value == 1
    run = Run(home / "runs" / (scores["score"].metadata or {})["run"])
    assert (run.spec.agent, str(run.state)) == ("inspect", "done")
    assert run.rollout is not None
    assert "exec" in {call.function_name for step in run.rollout.steps for call in step.tool_calls or ()}
    answers = (home / "data" / "wine" / "prepared" / "private" / "answers.csv").read_text().splitlines()
    shown = seen(log)
    assert "# Wine cultivars" in shown and "Not valid" in shown and str(expected) not in shown
    assert not any(row in path.read_bytes().decode("latin-1") or row in shown for row in answers[1:6])


HUGE = """
import os, pathlib
head, *rows = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"], "sample_submission.csv").read_text().splitlines()
lines = [head, *(f"{row.partition(',')[0]},1e300" for row in rows)]
pathlib.Path("submission.csv").write_text("".join(f"{line}\\n" for line in lines))
"""


@pytest.mark.parametrize(
    ("task", "code", "valid", "reason"),
    [
        ("wine", "open('submission.csv', 'w').write('id')", 0, "invalid_submission"),
        ("diabetes", HUGE, 1, "infinite_score"),
    ],
)
def test_a_submission_without_a_finite_score_is_not_scored(
    home: Path, places: dict[str, Any], task: str, code: str, valid: int, reason: str
) -> None:
    calls = [("python", {"code": code}), ("submit", {"answer": ""})]
    outputs = [ModelOutput.for_tool_call("mockllm/model", *call) for call in calls]
    for output in outputs:
        output.usage = ModelUsage()  # else it is estimated with a table from the web
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = evaluate(make(task, **places), model=model, display="none", log_dir=str(home / "other"))
    (sample,) = log.samples or ()
    scores = sample.scores or {}
    assert scores["valid"].value == valid and scores["score"].reason == reason
    assert (scores["standing"].as_float() > 0) == valid
    assert scores["score"].explanation and scores["score"].as_float() != scores["score"].as_float()


def test_our_agents_run_as_solvers(home: Path, places: dict[str, Any]) -> None:
    task = make("wine", agent="dummy", samples=2, **places)
    (log,) = evaluate(task, model="mockllm/model", display="none", log_dir=str(home / "other"))
    for sample in log.samples or ():
        facts = (sample.scores or {})["score"].metadata or {}
        run = Run(home / "runs" / facts["run"])
        assert run.report is not None and run.report.score is not None
        assert abs((sample.scores or {})["score"].as_float() - run.report.score) < 1e-12
        assert (run.spec.agent, run.spec.seed) == ("dummy", sample.metadata["seed"])
    assert [sample.metadata["seed"] for sample in log.samples or ()] == [0, 1]


@solver
def tries() -> Solver:
    """What Inspect's own check of sandboxes does, in short."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        box = sandbox()
        await box.write_file("folder/mine.bin", b"\x00\xff\r\n")
        assert await box.read_file("folder/mine.bin", text=False) == b"\x00\xff\r\n"
        ended = await box.exec(
            ["sh", "-c", "cat; echo $NAME >&2; pwd; exit 3"], input="in", cwd="folder", env={"NAME": "x"}
        )
        assert (ended.returncode, ended.stdout[:2], ended.stderr) == (3, "in", "x\n")
        assert ended.stdout.rstrip().endswith("/folder")
        assert (await box.exec(["no-such-program"])).returncode == 127
        big = "y" * 3_000_000
        await box.write_file("big.txt", big)
        assert (await box.exec(["cat", "big.txt"])).stdout == big
        for path, error in (("none", FileNotFoundError), ("folder", IsADirectoryError)):
            with pytest.raises(error):
                await box.read_file(path)
        with pytest.raises(IsADirectoryError):
            await box.write_file("folder", "x")
        with pytest.raises(TimeoutError):
            await box.exec(["sleep", "60"], timeout=1)
        with pytest.raises(RuntimeError, match="own user"):
            await box.exec(["true"], user="somebody")
        state.metadata["tried"] = True
        await box.exec(["sleep", "60"])  # ends with the session, at its time limit
        return state

    return solve


def test_the_sandbox_keeps_to_the_interface_and_ends_at_the_time_limit(home: Path, places: dict[str, Any]) -> None:
    task = make("wine", time_limit="8s", **places)
    (log,) = evaluate(task, solver=tries(), model="mockllm/model", display="none", log_dir=str(home / "other"))
    (sample,) = log.samples or ()
    assert log.status == "success", log.error
    assert sample.metadata["tried"] and sample.limit is not None and sample.limit.type == "time"
    assert (sample.scores or {})["valid"].value == 0


def test_sessions_that_wait_for_room_leave_threads_to_those_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    room = threading.Event()
    monkeypatch.setattr(sandboxes, "open_session", lambda *_words, **_named: room.wait(60))

    async def samples() -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(sandboxes.SessionSandbox.sample_init, "t", sandboxes.Places(task="wine"), {})
            await anyio.sleep(0.1)
            with anyio.fail_after(30):
                await sandboxes._apart(room.set)

    anyio.run(samples)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"task": "winne"}, "There is no task 'winne'. Did you mean wine?"),
        ({"agent": "NOPE"}, "There is no agent 'NOPE'."),
        ({"agent": "baseline", "options": '{"nosuch": 1}'}, "Agent baseline has no option nosuch."),
        ({"agent": "baseline", "options": "[1]"}, "not a JSON object"),
        ({"sandbox": "nosuch"}, "There is no sandbox 'nosuch'."),
        ({"samples": 0}, "-T samples: Input should be greater than or equal to 1."),
    ],
)
def test_bad_arguments_get_one_sentence_before_anything_runs(given: dict[str, Any], told: str) -> None:
    with pytest.raises(click.ClickException) as caught:  # which Inspect's command shows without a traceback
        _make_for_cli(given.pop("task", "wine"), given)
    assert told in caught.value.message
