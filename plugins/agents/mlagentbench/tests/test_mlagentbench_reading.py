"""MLAgentBench's logs as a rollout, whatever is in the files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_agent_mlagentbench.reader import LOGS, read_rollout
from mleredux_rollout import dump_rollout, parse_rollout, step_extra

TRACE, SAID, USAGE = f"{LOGS}/env_log/trace.json", f"{LOGS}/agent_log/main_log", f"{LOGS}/usage.jsonl"
FAILED = "Traceback (most recent call last):\nKeyError: 1"
NO_STEP = "Step 7:\n\n\nAssistant:\nno step of mine"
HEAD = "Enabled Tools in Prompt:['List Files']\n====Start====\nThe prompt with its Action: and Observation: words.\n"


def said(number: int, thought: str, action: str, given: str, result: str) -> str:
    words = (
        f"Reflection: {thought}\nResearch Plan and Status: Step by step.\n\nFact Check: None.\n"
        f"Thought: {thought}\nAction: {action}\nAction Input: {given}"
    )
    return f"Step {number}:\n\n\nAssistant:\n{words}\nObservation:\n\n```\n{result}\n```\n\n"


def acted(name: str, args: Any, observation: str, time: float) -> dict[str, Any]:
    return {"action": {"name": name, "args": args}, "observation": observation, "timestamp": time}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    for name in (TRACE, SAID):
        (tmp_path / name).parent.mkdir(parents=True)
    return tmp_path


def write(output: Path, text: str, steps: Any, calls: list[Any]) -> None:
    (output / SAID).write_text(text, encoding="utf-8")
    (output / TRACE).write_text(json.dumps({"steps": steps, "task_description": "Solve it."}), encoding="utf-8")
    (output / USAGE).write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")


def use(log: str, read: int, written: int) -> dict[str, Any]:
    return {"model": "gpt-4.1", "log": log, "prompt_tokens": read, "completion_tokens": written}


def test_thoughts_actions_results_and_tokens_come_together(output: Path) -> None:
    write(
        output,
        HEAD
        + said(0, "I run it.", "Execute Script", "{not json", "ActionInputParsingError: no JSON")
        + said(0, "Again.", "Execute Script", '{"script_name": "a.py"}', FAILED)
        + said(1, "I fix it.", "Edit Script (AI)", '{"script_name": "a.py"}', NO_STEP),
        [
            acted("Execute Script", {"script_name": "a.py"}, FAILED, 1.7e9),
            acted("Edit Script (AI)", {"script_name": "a.py"}, "The diff.", 1.7e9 + 60),
            acted("Execute Script", {"script_name": "a.py"}, "validation metric: 0.5", 1.7e9 + 90),
        ],
        [use("step_0_log.log", 10, 1), use("step_0_log.log", 20, 2), use("step_1_log.log", 30, 3),
         use("step_1_tool_log.log", 40, 4)],
    )  # fmt: skip
    rollout = read_rollout(output)
    assert rollout is not None
    problem, wrong, ran, fixed, again = rollout.steps
    assert (problem.source, problem.message) == ("user", "Solve it.")
    assert wrong.tool_calls is not None and wrong.tool_calls[0].arguments == {"input": "{not json"}
    assert wrong.observation is not None and "no JSON" in str(wrong.observation.results[0].content)
    assert ran.message == (
        "Reflection: Again.\nResearch Plan and Status: Step by step.\nFact Check: None.\nThought: Again."
    )
    assert [step_extra(step).is_buggy for step in (ran, fixed, again)] == [True, None, False]
    assert fixed.observation is not None and fixed.observation.results[0].content == "The diff."
    assert fixed.metrics is not None and (fixed.metrics.prompt_tokens, fixed.llm_call_count) == (70, 2)
    assert ran.timestamp == "2023-11-14T22:13:20.000+00:00"
    total = rollout.final_metrics
    assert total is not None and (total.total_prompt_tokens, total.total_completion_tokens) == (100, 10)
    assert rollout.agent.model_name == "gpt-4.1" and parse_rollout(dump_rollout(rollout)) == rollout


def test_one_of_the_logs_is_enough(output: Path) -> None:
    write(output, said(0, "I look.", "List Files", '{"dir_path": "."}', "data/"), [], [])
    rollout = read_rollout(output)
    assert rollout is not None and len(rollout.steps) == 2
    write(output, "", [acted("Final Answer", {"final_answer": "Done."}, "end", 1.0)], [])
    rollout = read_rollout(output)
    assert rollout is not None and rollout.steps[1].tool_calls is not None
    assert rollout.steps[1].tool_calls[0].function_name == "Final Answer"


def test_without_logs_there_is_no_rollout(tmp_path: Path, output: Path) -> None:
    assert read_rollout(tmp_path / "nothing") is None
    write(output, HEAD, "no list", [])
    assert read_rollout(output) is None
    for name in (TRACE, SAID):
        (output / name).unlink()
    (output / TRACE).symlink_to("/etc/passwd")
    os.mkfifo(output / SAID)
    assert read_rollout(output) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("action", "name", "args", "observation", "timestamp", "\ud800")), inner)
    ),
    max_leaves=6,
)
TEXT = st.lists(
    st.sampled_from(("Step 0:\n\n\nAssistant:\n", "Step 1:\n\n\nAssistant:\n", "Action: A\n", "Action Input: {}\n",
                     "\nObservation:\n\n```\n", "\n```\n\n", "\x00", "[" * 2000)) | st.text(max_size=8)
).map("".join)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(text=TEXT, steps=VALUES, calls=st.lists(VALUES, max_size=3))
def test_whatever_is_in_the_files_what_comes_out_is_a_valid_rollout(
    text: str, steps: Any, calls: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("o")
    for name in (TRACE, SAID):
        (output / name).parent.mkdir(parents=True)
    write(output, text, steps, calls)
    rollout = read_rollout(output)
    assert rollout is None or parse_rollout(dump_rollout(rollout)).steps
