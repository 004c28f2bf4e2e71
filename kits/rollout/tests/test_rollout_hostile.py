"""Documents come from agents: whatever they hold, reading ends soon, within limits, with a sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mleredux_rollout.documents import (
    MAX_PROBLEMS,
    InvalidRollout,
    Problem,
    check_rollout,
    dump_rollout,
    parse_rollout,
    problems_in,
    read_rollout,
)
from mleredux_rollout.extras import StepExtra, run_extra, step_extra

pytestmark = pytest.mark.attack

HEAD = b'{"agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}]'
NOT_JSON = {
    "empty": b"",
    "not UTF-8": b'{"agent": "\xff"}',
    "cut off": b'{"agent": {',
    "two values": b"{} {}",
    "deeply nested": b"[" * 1_000_000,
    "deeply nested beneath a valid head": HEAD + b',"extra":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    "NaN": HEAD + b',"extra":{"x":NaN}}',
    "infinity": HEAD + b',"extra":{"x":-Infinity}}',
    "half a surrogate pair": HEAD + b',"notes":"\\ud800"}',
    "half a pair as UTF-8": HEAD + b',"notes":"\xed\xa0\x80"}',
    "bytes that are not UTF-8": HEAD + b',"notes":"\xff"}',
    "a byte order mark": b"\xef\xbb\xbf" + HEAD + b"}",
    "an integer of a million digits": HEAD + b',"extra":{"x":' + b"1" * 1_000_000 + b"}}",
    "Python": b"{'agent': None}",
}

ODD = (
    *("NaN", "infinity", "half a surrogate pair", "half a pair as UTF-8"),
    *("bytes that are not UTF-8", "a byte order mark"),
)
"""Where one odd value spoils no more than itself: the trace is kept."""


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_json_is_one_problem_of_the_whole_document(name: str) -> None:
    (problem,) = problems_in(NOT_JSON[name])
    assert problem.path == "$"
    assert problem.message.startswith("The document is not JSON: ")
    if name in ODD:
        assert [step.source for step in parse_rollout(NOT_JSON[name]).steps] == ["user"]
        return
    with pytest.raises(InvalidRollout, match=r"is not (valid )?JSON|agent: an object is expected here, not text"):
        parse_rollout(NOT_JSON[name])


@pytest.mark.parametrize("value", ["[]", "null", "7", '"text"', "true"])
def test_a_rollout_is_an_object(value: str) -> None:
    assert problems_in(value.encode())[0].message.startswith("a rollout must be an object, not ")


def test_a_file_above_the_size_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert check_rollout(path) == [Problem("$", f"{path} is larger than the limit of 67,108,864 bytes")]
    with pytest.raises(InvalidRollout, match="larger than the limit of 10 bytes"):
        read_rollout(path, max_bytes=10)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trajectory.json")
    assert "is not a regular file" in check_rollout(tmp_path / "trajectory.json")[0].message


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_what_is_no_file_is_said_to_be_none(tmp_path: Path, name: str) -> None:
    assert len(check_rollout(tmp_path / name)) == 1


def test_a_document_of_too_many_values_is_not_parsed() -> None:
    assert "more than 4,000,000 values" in problems_in(b"[" + b"0," * 4_000_001 + b"0]")[0].message


def test_many_faults_are_cut_off_with_a_last_word_on_it() -> None:
    steps = ",".join('{"step_id":1}' for _ in range(1_000)).encode()
    found = problems_in(b'{"agent":{"name":"a","version":"1"},"steps":[' + steps + b"]}")
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].message == "there are more problems than the 100 listed"


def test_a_long_list_of_wrong_items_is_one_problem() -> None:
    calls = ",".join("1" * 1 for _ in range(100_000)).encode()
    step = b'{"step_id":1,"source":"agent","message":"","tool_calls":[' + calls + b"]}"
    found = problems_in(b'{"agent":{"name":"a","version":"1"},"steps":[' + step + b"]}")
    assert [problem.path for problem in found] == ["$.steps[0].tool_calls[0]"]


def test_long_names_and_values_are_cut_in_messages() -> None:
    long = "x" * 100_000
    found = problems_in(json.dumps({long: 1, "schema_version": long, "agent": {}, "steps": []}).encode())
    assert all(len(str(problem)) < 400 for problem in found)


def test_numbers_beyond_a_float_become_null_in_what_is_written() -> None:
    trajectory = parse_rollout(HEAD + b',"extra":{"x":1e999}}')
    assert json.loads(dump_rollout(trajectory), parse_constant=pytest.fail)["extra"] == {"x": None}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["step_id", "source", "message", "tool_calls", "observation", "metrics", "extra", "results"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["agent", "steps", "extra", "notes", "subagent_trajectories"]), json_values))
def test_any_json_gets_problems_or_a_trajectory(value: dict[str, object]) -> None:
    data = json.dumps(value).encode()
    if problems_in(data):
        with pytest.raises(InvalidRollout):
            parse_rollout(data)
    else:
        assert parse_rollout(dump_rollout(parse_rollout(data)))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(names, json_values), max_size=3))
def test_any_steps_get_problems_or_a_trajectory(steps: list[dict[str, object]]) -> None:
    data = json.dumps({"agent": {"name": "a", "version": "1"}, "steps": steps}).encode()
    if problems_in(data):
        with pytest.raises(InvalidRollout):
            parse_rollout(data)
    else:
        parse_rollout(data)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*StepExtra.model_fields, "own"]), json_values))
def test_extras_of_any_kind_are_read_without_an_error(extra: dict[str, object]) -> None:
    text = json.dumps({"step_id": 1, "source": "agent", "message": "", "extra": extra}).encode()
    document = b'{"agent":{"name":"a","version":"1"},"steps":[' + text + b'],"extra":{"mleredux":' + text + b"}}"
    if not problems_in(document):
        trajectory = parse_rollout(document)
        assert isinstance(step_extra(trajectory.steps[0]), StepExtra)
        assert run_extra(trajectory) is None


def test_extras_keep_what_is_right_beside_what_is_wrong() -> None:
    step = b'{"step_id":1,"source":"agent","message":"","extra":{"node_id":"n","validation_metric":"?","x":1}}'
    trajectory = parse_rollout(b'{"agent":{"name":"a","version":"1"},"steps":[' + step + b"]}")
    facts = step_extra(trajectory.steps[0])
    assert (facts.node_id, facts.validation_metric, facts.model_extra) == ("n", None, {"x": 1})


def test_a_million_unknown_fields_are_one_problem() -> None:
    fields = ",".join(f'"k{number}":1' for number in range(1_000_000)).encode()
    assert [problem.path for problem in problems_in(HEAD + b"," + fields + b"}")] == ["$"]
