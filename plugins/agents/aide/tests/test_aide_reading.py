"""AIDE's journal becomes a rollout: a tree of nodes, whatever the journal says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mleredux_agent_aide.reader import read_rollout
from mleredux_rollout import InvalidRollout, Trajectory, dump_rollout, parse_rollout, step_extra


def node(name: str, step: int, metric: float | None, **more: Any) -> dict[str, Any]:
    """A node as aideml 0.2.2 writes it."""
    return {
        "code": f"print({step})",
        "plan": f"Plan {step}.",
        "step": step,
        "id": name,
        "ctime": 1_760_000_000.5 + step,
        "parent": None,
        "children": [],
        "_term_out": ["out ", f"{step}\n", "Execution time: a moment seconds."],
        "exec_time": 1.5,
        "exc_type": None if metric is not None else "KeyError",
        "exc_info": None,
        "exc_stack": None,
        "analysis": f"Analysis {step}.",
        "metric": {"value": metric, "maximize": None if metric is None else True},
        "is_buggy": metric is None,
        **more,
    }


def journal(*nodes: Any, **parents: str) -> dict[str, Any]:
    return {"nodes": list(nodes), "node2parent": parents, "__version": "2"}


def written(output: Path, document: Any, facts: Any = None, folder: str = "aide") -> Path:
    logs = output / "logs" / folder
    logs.mkdir(parents=True, exist_ok=True)
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    (logs / "journal.json").write_bytes(content)
    if facts is not None:
        (logs / "run.json").write_text(json.dumps(facts))
    return output


def valid(output: Path) -> Trajectory:
    """The rollout, which the checker of the format accepts."""
    found = read_rollout(output)
    assert found is not None
    return parse_rollout(dump_rollout(found))


TREE = journal(node("a", 0, None), node("b", 1, 0.8), node("c", 2, 0.9), node("d", 3, 0.85), b="a", c="b", d="b")
FACTS = {
    "aide": "0.2.2",
    "code_model": "o4-mini",
    "feedback_model": "gpt-4.1-mini",
    "task": "Tell digits apart.",
    "nodes": {
        "b": {"bytes": 1, "submission": "submissions/0001.csv", "version": 1},
        "c": {"bytes": 1, "submission": "submissions/0002.csv", "version": 2},
        "d": {"bytes": 1, "submission": "submissions/0003.csv"},
    },
}


def test_every_node_is_a_step_with_its_place_in_the_tree(tmp_path: Path) -> None:
    rollout = valid(written(tmp_path, TREE, FACTS))
    assert (rollout.agent.name, rollout.agent.version, rollout.agent.model_name) == ("aide", "0.2.2", "o4-mini")
    assert (rollout.steps[0].source, rollout.steps[0].message) == ("user", "Tell digits apart.")
    facts = [step_extra(step) for step in rollout.steps[1:]]
    assert [(f.node_id, f.parent_id, f.stage) for f in facts] == [
        ("a", None, "draft"),
        ("b", "a", "debug"),
        ("c", "b", "improve"),
        ("d", "b", "improve"),
    ]
    assert [f.is_buggy for f in facts] == [True, False, False, False]
    assert [f.validation_metric for f in facts] == [None, 0.8, 0.9, 0.85]
    assert all(f.seconds == 1.5 for f in facts) and facts[1].lower_is_better is False
    step = rollout.steps[2]
    assert step.message == "Plan 1." and step.tool_calls and step.observation
    assert step.tool_calls[0].arguments == {"code": "print(1)"}
    assert step.observation.results[0].content == "out 1\nExecution time: a moment seconds."
    assert step.extra and step.extra["analysis"] == "Analysis 1."
    assert step.timestamp == "2025-10-09T08:53:21.500+00:00"
    assert rollout.steps[1].extra and rollout.steps[1].extra["exc_type"] == "KeyError"
    assert rollout.extra == {"aide": {"best_node": "c", "feedback_model": "gpt-4.1-mini"}}


def kept(tmp_path: Path, *versions: str) -> list[int | None]:
    """Versions that steps name, where nodes b, c and d left `b`, `c`, `d` and the run kept these versions."""
    output = written(tmp_path / "output", TREE, FACTS)
    for folder, names, texts in (
        (output / "logs" / "aide" / "submissions", ("0001.csv", "0002.csv", "0003.csv"), ("b", "c", "d")),
        (tmp_path / "submissions", [f"{n:04d}.csv" for n in range(1, len(versions) + 1)], versions),
    ):
        folder.mkdir()
        for name, text in zip(names, texts, strict=True):
            (folder / name).write_text(text)
    return [step_extra(step).submission_version for step in valid(output).steps[1:]]


def test_steps_name_the_version_of_the_submission_that_they_wrote(tmp_path: Path) -> None:
    assert kept(tmp_path, "b", "c") == [None, 1, 2, None]


def test_a_version_that_the_run_missed_is_not_mistaken_for_another(tmp_path: Path) -> None:
    assert kept(tmp_path, "c") == [None, None, 1, None]


def test_what_was_not_handed_in_names_no_version(tmp_path: Path) -> None:
    assert kept(tmp_path, "b", "d") == [None, 1, None, None]


def test_no_file_outside_of_the_logs_is_looked_at(tmp_path: Path) -> None:
    output = written(tmp_path / "output", TREE, {"nodes": {"b": {"submission": "../../../secret", "version": 1}}})
    (tmp_path / "submissions").mkdir()
    for path in (tmp_path / "secret", tmp_path / "submissions" / "0001.csv"):
        path.write_text("secret")
    assert all(step_extra(step).submission_version is None for step in valid(output).steps)


def test_a_journal_of_aides_own_program_is_read_too(tmp_path: Path) -> None:
    rollout = valid(written(tmp_path, TREE, folder="0-brave-blue-bear"))
    assert len(rollout.steps) == 5 and rollout.agent.version == "unknown"


def test_nan_metrics_and_broken_characters_are_let_through(tmp_path: Path) -> None:
    text = json.dumps(journal(node("a", 0, 0.5, _term_out=["\udcff\ud800"]), node("b", 1, float("nan"))))
    facts = [step_extra(step) for step in valid(written(tmp_path, text.encode())).steps[1:]]
    assert [(f.validation_metric, f.is_buggy) for f in facts] == [(0.5, False), (None, True)]


def test_lower_metrics_can_be_better(tmp_path: Path) -> None:
    nodes = [node("a", 0, 0.7), node("b", 1, 0.1)]
    for made in nodes:
        made["metric"]["maximize"] = False
    rollout = valid(written(tmp_path, journal(*nodes)))
    assert rollout.extra == {"aide": {"best_node": "b"}}


def test_without_a_journal_there_is_no_rollout(tmp_path: Path) -> None:
    assert read_rollout(tmp_path) is None
    assert read_rollout(written(tmp_path, journal())) is None


@pytest.mark.parametrize("data", [b"", b'{"nodes": [{"id": "a"', b"[" * 200_000, b"\x00\x01"])
def test_a_damaged_journal_is_one_error(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidRollout):
        read_rollout(written(tmp_path, data))


def test_parents_that_make_no_tree_are_left_out(tmp_path: Path) -> None:
    loop = journal(node("a", 0, 0.1), node("b", 1, 0.2), node("c", 2, 0.3), a="b", b="a", c="c")
    facts = [step_extra(step) for step in valid(written(tmp_path, loop)).steps[1:]]
    assert [f.parent_id for f in facts] == [None, "a", None]


def test_nodes_of_one_id_are_told_apart(tmp_path: Path) -> None:
    facts = [step_extra(s) for s in valid(written(tmp_path, journal(node("a", 0, 0.1), node("a", 1, 0.2)))).steps[1:]]
    assert [f.node_id for f in facts] == ["a", "a-1"]


def test_huge_outputs_are_shortened(tmp_path: Path) -> None:
    step = valid(written(tmp_path, journal(node("a", 0, 0.1, _term_out=["x" * 3_000_000] * 3)))).steps[1]
    assert step.observation and len(str(step.observation.results[0].content)) < 300_000


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [*node("a", 0, 0.5), "unknown"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    nodes=st.lists(st.dictionaries(st.sampled_from(_FIELDS), _VALUE, max_size=8) | _VALUE, max_size=4),
    parents=st.dictionaries(st.text(max_size=2), _VALUE, max_size=3) | _VALUE,
    facts=_VALUE,
)
def test_no_value_in_a_journal_breaks_the_rollout(nodes: Any, parents: Any, facts: Any, tmp_path: Path) -> None:
    output = written(tmp_path, {"nodes": nodes, "node2parent": parents}, facts)
    if read_rollout(output) is not None:
        valid(output)
