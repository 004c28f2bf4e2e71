"""Convert AIDE's journal to a rollout: a tree of nodes becomes steps in order of creation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux_rollout import (
    AgentInfo,
    Step,
    StepExtra,
    Trajectory,
    as_count,
    as_dict,
    as_list,
    as_number,
    as_text,
    as_time,
    called,
    function_tool,
    read_native,
    read_object,
)

from mleredux_agent_aide.versions import versions_of_nodes

JOURNAL = "journal.json"
FACTS = "run.json"
MAX_NODES = 20_000
_ID, _NAME = 200, 200
"""Maximum number of characters of an id, and of a name."""


def read_rollout(output: Path) -> Trajectory | None:
    """Return the rollout of an output folder, or None if there is no journal.

    Args:
        output: The output folder of a run, with `logs/aide/journal.json` from our driver, or `logs/<run>/journal.json`
            from AIDE itself.

    Raises:
        InvalidRollout: The journal is damaged.
    """
    folder = output / "logs" / "aide"
    if not (folder / JOURNAL).is_file():
        folder = next((path.parent for path in sorted(output.glob(f"logs/*/{JOURNAL}"))), folder)
        if not (folder / JOURNAL).is_file():
            return None
    journal = as_dict(read_native(output, _name(folder / JOURNAL, output)))
    nodes = _nodes(journal)
    if not nodes:
        return None
    facts = read_object(output, _name(folder / FACTS, output))
    model = as_text(facts.get("code_model"), _NAME) or None
    steps = [Step(step_id=1, source="user", message=as_text(facts.get("task")) or "(The task is not in AIDE's logs.)")]
    versions = versions_of_nodes(facts, folder, output.parent / "submissions")
    steps += [_step(node, number, nodes, model, versions.get(node.id)) for number, node in enumerate(nodes.values(), 2)]
    best = _best(list(nodes.values()))
    own = {"best_node": best, "feedback_model": as_text(facts.get("feedback_model"), _NAME) or None}
    return Trajectory(
        agent=AgentInfo(
            name="aide",
            version=as_text(facts.get("aide"), _NAME) or "unknown",
            model_name=model,
            tool_definitions=[_RUN_PYTHON],
        ),
        steps=steps,
        extra={"aide": {name: value for name, value in own.items() if value}},
    )


_RUN_PYTHON = function_tool("run_python", "Run a solution in a new Python process.", "code")


@dataclass(frozen=True)
class _Node:
    """A node of the journal; `parent` refers to an earlier node."""

    id: str
    values: dict[str, Any]
    parent: str | None

    @property
    def buggy(self) -> bool:
        return self.values.get("is_buggy") is not False or self.metric is None

    @property
    def metric(self) -> float | None:
        return as_number(as_dict(self.values.get("metric")).get("value"))

    @property
    def lower_is_better(self) -> bool | None:
        maximize = as_dict(self.values.get("metric")).get("maximize")
        return not maximize if isinstance(maximize, bool) else None


def _nodes(journal: dict[str, Any]) -> dict[str, _Node]:
    """Return the journal's nodes by id, ordered by step. Parents always come first, which guarantees a tree."""
    parents = as_dict(journal.get("node2parent"))
    raw_nodes = [as_dict(node) for node in as_list(journal.get("nodes"))[:MAX_NODES]]
    raw_nodes = [node for node in raw_nodes if node]
    steps = [as_count(node.get("step")) for node in raw_nodes]
    order = sorted(range(len(raw_nodes)), key=lambda index: (steps[index] is None, steps[index] or 0, index))
    nodes: dict[str, _Node] = {}
    for index in order:
        raw = raw_nodes[index].get("id")
        name = as_text(raw, _ID) or f"node-{index}"
        if name in nodes:
            name = f"{name}-{index}"
        raw_parent = parents.get(raw) if isinstance(raw, str) else None
        parent = as_text(raw_parent, _ID) if raw_parent is not None else None
        nodes[name] = _Node(name, raw_nodes[index], parent if parent in nodes else None)
    return nodes


def _step(node: _Node, number: int, nodes: dict[str, _Node], model: str | None, version: int | None) -> Step:
    values = node.values
    stage = "draft" if node.parent is None else "debug" if nodes[node.parent].buggy else "improve"
    facts = StepExtra(
        node_id=node.id,
        parent_id=node.parent,
        stage=stage,
        validation_metric=node.metric,
        lower_is_better=node.lower_is_better,
        is_buggy=node.buggy,
        seconds=as_number(values.get("exec_time")),
        submission_version=version,
    )
    more = {"analysis": as_text(values.get("analysis")), "exc_type": as_text(values.get("exc_type"), _NAME)}
    output = "".join(as_text(part) for part in as_list(values.get("_term_out")))
    return Step(
        step_id=number,
        timestamp=as_time(values.get("ctime")),
        source="agent",
        model_name=model,
        message=as_text(values.get("plan")),
        **called(f"run-{number}", "run_python", {"code": as_text(values.get("code"))}, output),
        extra={**facts.as_extra(), **{name: text for name, text in more.items() if text}},
    )


def _best(nodes: list[_Node]) -> str | None:
    """Return the good node with the best metric, in the direction of the first good node."""
    good = [(node.metric, node) for node in nodes if not node.buggy and node.metric is not None]
    if not good:
        return None
    sign = -1 if good[0][1].lower_is_better else 1
    return max(good, key=lambda pair: sign * pair[0])[1].id


def _name(path: Path, output: Path) -> str:
    return path.relative_to(output).as_posix()
