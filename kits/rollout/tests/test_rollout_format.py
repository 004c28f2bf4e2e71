"""The rules of ATIF, each with a document that keeps it and one that breaks it, as Harbor judges them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from mleredux_rollout.documents import (
    InvalidRollout,
    dump_rollout,
    parse_rollout,
    problems_in,
    read_rollout,
    write_rollout,
)
from mleredux_rollout.extras import StepExtra, json_schema, run_extra, step_extra
from mleredux_rollout.models import Trajectory, text_of

REPOSITORY = Path(__file__).parents[3]
EXAMPLES = sorted((REPOSITORY / "docs" / "reference" / "examples").glob("rollout-*.json"))
PLAIN: dict[str, Any] = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "agent", "message": "m"}],
}
CALL = {"tool_call_id": "c1", "function_name": "run", "arguments": {}}
IMAGE = {"media_type": "image/png", "path": "a.png"}
SOUND = {"media_type": "audio/wav", "path": "a.wav", "duration_sec": 1.5}
EMBEDDED = {**PLAIN, "trajectory_id": "child"}


def document(*, step: dict[str, Any] | None = None, **root: Any) -> dict[str, Any]:
    """The plain document, its one step and its root changed."""
    made = {**deepcopy(PLAIN), **root}
    if step:
        made["steps"][0].update(step)
    return made


def problems(value: Any) -> list[str]:
    return [str(problem) for problem in problems_in(json.dumps(value).encode())]


KEPT = {
    "no schema version": {name: value for name, value in PLAIN.items() if name != "schema_version"},
    "oldest version": document(schema_version="ATIF-v1.0"),
    "continued": document(continued_trajectory_ref="more.json", session_id="s", notes="n", extra={"any": [1]}),
    "timestamp in UTC": document(step={"timestamp": "2026-11-21T12:00:00Z"}),
    "effort as a word": document(step={"reasoning_effort": "high"}),
    "effort as a number": document(step={"reasoning_effort": 1}),
    "dispatch without a model": document(step={"llm_call_count": 0, "tool_calls": [CALL], "model_name": "m"}),
    "answer to a call": document(
        step={"tool_calls": [CALL], "observation": {"results": [{"source_call_id": "c1", "content": "ok"}]}}
    ),
    "observation that nobody asked for": document(step={"source": "user", "observation": {"results": [{}]}}),
    "agent-only field that is null": document(step={"source": "user", "metrics": None}),
    "parts": document(
        step={
            "message": [
                {"type": "text", "text": ""},
                {"type": "image", "source": IMAGE, "text": None},
                {"type": "audio", "source": SOUND},
            ]
        }
    ),
    "token ids": document(step={"metrics": {"completion_token_ids": [1], "logprobs": [-0.5], "cost_usd": 1}}),
    "steps counted otherwise": document(final_metrics={"total_steps": 7}),
    "embedded": document(subagent_trajectories=[EMBEDDED]),
    "reference by id": document(
        step={"observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "child"}]}]}}
    ),
    "reference by path": document(
        step={"observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "c.json"}]}]}}
    ),
}

BROKEN = {
    "future version": (document(schema_version="ATIF-v1.9"), "$.schema_version: must be"),
    "unknown field": (document(score=1), "$.score: the format has no such field"),
    "unknown field of a name that is no word": (document(**{"a b": 1}), '$["a b"]: the format has no such'),
    "no steps": (document(steps=[]), "$.steps: must not be empty"),
    "steps are no array": (document(steps={"0": 1}), "$.steps: an array is expected here, not an object"),
    "step is no object": (document(steps=[7]), "$.steps[0]: an object is expected here, not an integer"),
    "agent without version": (document(agent={"name": "a"}), "$.agent: `version` is missing"),
    "steps from zero": (document(step={"step_id": 0}), "$.steps[0].step_id: must be 1 or more, not 0"),
    "gap in the steps": (document(step={"step_id": 2}), "$.steps[0].step_id: must be 1, not 2"),
    "number as text": (document(step={"step_id": "1"}), "$.steps[0].step_id: an integer is expected here"),
    "unknown source": (document(step={"source": "tool"}), "$.steps[0].source: must be 'system', 'user' or"),
    "no message": (document(step={"message": None}), "$.steps[0].message: a message is text, or an array"),
    "effort as an object": (
        document(step={"reasoning_effort": {}}),
        "$.steps[0].reasoning_effort: an effort",
    ),
    "timestamp in words": (
        document(step={"timestamp": "now"}),
        "$.steps[0].timestamp: a timestamp is an ISO",
    ),
    "tool calls of a user": (
        document(step={"source": "user", "tool_calls": []}),
        "$.steps[0].tool_calls: belongs only to steps whose source is agent, not user",
    ),
    "metrics without a call": (
        document(step={"llm_call_count": 0, "metrics": {}}),
        "$.steps[0].metrics: is not allowed if `llm_call_count` is 0",
    ),
    "reasoning without a call": (
        document(step={"llm_call_count": 0, "reasoning_content": ""}),
        "$.steps[0].reasoning_content: is not allowed",
    ),
    "negative count of calls": (
        document(step={"llm_call_count": -1}),
        "$.steps[0].llm_call_count: must be 0",
    ),
    "answer to another step's call": (
        document(step={"observation": {"results": [{"content": "x"}, {"source_call_id": "c9"}]}}),
        "$.steps[0].observation.results[1].source_call_id: does not match a tool call of this step",
    ),
    "arguments are no object": (
        document(step={"tool_calls": [{**CALL, "arguments": "x"}]}),
        "$.steps[0].tool_calls[0].arguments: an object is expected here, not text",
    ),
    "text part without text": (
        document(step={"message": [{"type": "text"}]}),
        "$.steps[0].message[0]: a part",
    ),
    "image part with text": (
        document(step={"message": [{"type": "image", "text": "x", "source": IMAGE}]}),
        "$.steps[0].message[0]: a part of type image has `source` and no `text`",
    ),
    "image part with a recording": (
        document(step={"message": [{"type": "image", "source": SOUND}]}),
        "$.steps[0].message[0]: a part of type image can't hold audio/wav",
    ),
    "image that lasts": (
        document(step={"message": [{"type": "image", "source": {**IMAGE, "duration_sec": 1}}]}),
        "$.steps[0].message[0]: only a recording has a `duration_sec`",
    ),
    "reference to nothing": (
        document(step={"observation": {"results": [{"subagent_trajectory_ref": [{"session_id": "s"}]}]}}),
        "$.steps[0].observation.results[0].subagent_trajectory_ref[0]: a reference needs",
    ),
    "embedded without id": (
        document(subagent_trajectories=[PLAIN]),
        "$.subagent_trajectories[0].trajectory_id: is required in an embedded trajectory",
    ),
    "embedded with the same id": (
        document(subagent_trajectories=[EMBEDDED, EMBEDDED]),
        "$.subagent_trajectories[1].trajectory_id: is also used by another embedded trajectory",
    ),
    "fault within an embedded one": (
        document(subagent_trajectories=[{**EMBEDDED, "steps": [{"step_id": 1, "source": "user"}]}]),
        "$.subagent_trajectories[0].steps[0]: `message` is missing",
    ),
    "negative total of steps": (
        document(final_metrics={"total_steps": -1}),
        "$.final_metrics.total_steps: must",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_document_within_the_rules_is_valid_and_survives_a_round_trip(name: str) -> None:
    assert problems(KEPT[name]) == []
    first = parse_rollout(json.dumps(KEPT[name]).encode())
    assert parse_rollout(dump_rollout(first)) == first


@pytest.mark.parametrize("name", BROKEN)
def test_a_document_that_breaks_a_rule_is_refused_with_the_place_and_a_sentence(name: str) -> None:
    broken, wanted = BROKEN[name]
    found = problems(broken)
    assert len(found) == 1
    assert found[0].startswith(wanted)
    with pytest.raises(InvalidRollout) as refused:
        parse_rollout(json.dumps(broken).encode())
    assert wanted.partition(":")[0] in refused.value.message


def test_several_faults_are_named_together() -> None:
    faulty = document(step={"source": "nobody"}, notes=3)
    faulty["steps"].append({"step_id": 2, "source": "user"})
    assert [line.partition(":")[0] for line in problems(faulty)] == [
        "$.notes",
        "$.steps[0].source",
        "$.steps[1]",
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_documentation_shows_valid_documents(path: Path) -> None:
    trajectory = read_rollout(path)
    assert dump_rollout(trajectory) == path.read_bytes()
    assert run_extra(trajectory) is not None
    assert any(step_extra(step).validation_metric is not None for step in trajectory.steps)


def test_there_are_at_least_two_examples() -> None:
    assert len(EXAMPLES) >= 2


def test_the_committed_json_schema_is_current() -> None:
    committed = REPOSITORY / "docs" / "reference" / "schemas" / "rollout.schema.json"
    assert json.loads(committed.read_text(encoding="utf-8")) == json_schema(), (
        f"write {committed.name} again: python -m mleredux_rollout > docs/reference/schemas/{committed.name}"
    )


def test_a_written_document_is_read_back_and_leaves_no_other_file(tmp_path: Path) -> None:
    trajectory = Trajectory.model_validate(KEPT["parts"])
    write_rollout(trajectory, tmp_path / "deep" / "rollout.json")
    assert read_rollout(tmp_path / "deep" / "rollout.json") == trajectory
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["rollout.json"]
    assert text_of(trajectory.steps[0].message) == "\n[image: a.png]\n[audio: a.wav]"


def test_the_page_of_the_documentation_names_every_field_of_a_steps_extra() -> None:
    page = (REPOSITORY / "docs" / "reference" / "rollouts.md").read_text(encoding="utf-8")
    assert [name for name in StepExtra.model_fields if f"`{name}`" not in page] == []
