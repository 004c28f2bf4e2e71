"""Create a rollout from the record of calls alone, for agents that do not write one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from mleredux.models.formats import counted
from mleredux.plugin.agent import Agent
from mleredux.plugin.artifact import Artifact, Run
from mleredux_llm_protocols import Turn, reply_turn, request_turns, tools_of
from mleredux_rollout import models as atif
from mleredux_rollout import write_rollout

from mleredux_gateway.record import CALLS, FOLDER, read_calls

TRAJECTORY = "trajectory.json"
_SHORT = 20


@dataclass
class _Draft:
    """A step that may still receive the results of its tool calls; they took `seconds`, if there are any."""

    turn: Turn
    time: str
    call: dict[str, Any] | None = None
    copied: bool = False
    results: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None


def write_trajectory(run: Run, agent: Agent) -> bool:
    """Write `llm/trajectory.json` for a run; return False if no call was answered."""
    trajectory = make_trajectory(read_calls(run.path / FOLDER / CALLS), agent.id, agent.version, run.id)
    if trajectory is not None:
        write_rollout(trajectory, run.path / FOLDER / TRAJECTORY)
    return trajectory is not None


def make_trajectory(
    calls: Iterable[dict[str, Any]], agent: str, version: str, session: str | None = None
) -> atif.Trajectory | None:
    """Convert calls, each of which repeats the previous conversation, to steps of one conversation.

    Content of a request becomes a step if it has not been seen before: a message that occurs in a request more often
    than among the steps is new. So it does not matter whether an agent sends one growing conversation, omits its
    middle, or starts over each time. Tool results are stored with the calls that produced them.

    Args:
        calls: Calls as returned by `read_calls`.
        agent: The agent's id.
        version: The agent's version.
        session: The run's id.

    Returns:
        The document; None if no call was answered.
    """
    drafts: list[_Draft] = []
    seen: Counter[str] = Counter()
    tools: dict[str, dict[str, Any]] = {}
    totals: Counter[str] = Counter()
    cost: float | None = 0.0
    refused: list[dict[str, Any]] = []
    for call in sorted(calls, key=lambda entry: int(entry["call"])):
        if call.get("refused"):
            refused.append(call)
            continue
        totals.update({name: call.get(name) or 0 for name in ("prompt_tokens", "cached_tokens", "completion_tokens")})
        totals.update(calls=1, failed=bool(call.get("failed")))
        cost = None if cost is None or call.get("cost_usd") is None else cost + call["cost_usd"]
        request = call.get("request")
        if not isinstance(request, dict):
            continue
        for tool in tools_of(request):
            tools.setdefault(tool["function"]["name"], tool)
        _add_new(request_turns(call["kind"], request), call, drafts, seen)
        reply = None if call["status"] != 200 else reply_turn(call["kind"], call.get("response"))
        if reply is not None:
            ended = datetime.fromisoformat(call["time"]) + timedelta(seconds=call.get("seconds") or 0)
            drafts.append(_Draft(reply, ended.isoformat(), call))
            seen[reply.key] += 1
    if not any(draft.call for draft in drafts):
        return None
    steps = [_step(number, draft) for number, draft in enumerate(drafts, start=1)]
    if refused:
        sentence = f"{counted(len(refused), 'call')} not forwarded; the first: {refused[0].get('error')}"
        steps.append(atif.Step(step_id=len(steps) + 1, timestamp=refused[0]["time"], source="system", message=sentence))
    model = next(draft.call["model"] for draft in drafts if draft.call)
    return atif.Trajectory(
        session_id=session,
        agent=atif.AgentInfo(
            name=agent, version=version, model_name=model, tool_definitions=list(tools.values()) or None
        ),
        steps=steps,
        notes="Created from the calls that the gateway recorded; other actions of the agent are not included.",
        final_metrics=atif.FinalMetrics(
            total_prompt_tokens=totals["prompt_tokens"],
            total_completion_tokens=totals["completion_tokens"],
            total_cached_tokens=totals["cached_tokens"],
            total_cost_usd=cost,
            total_steps=len(steps),
            extra={"llm_calls": totals["calls"], "failed_calls": totals["failed"], "refused_calls": len(refused)},
        ),
    )


def _add_new(turns: list[Turn], call: dict[str, Any], drafts: list[_Draft], seen: Counter[str]) -> None:
    here: Counter[str] = Counter()
    for turn in turns:
        here[turn.key] += 1
        if here[turn.key] <= seen[turn.key]:
            continue
        seen[turn.key] += 1
        if turn.role == "assistant" and _is_modified_reply(turn, drafts):
            continue
        if turn.role == "tool" and _answer(turn, drafts, call["time"]):
            continue
        drafts.append(_Draft(turn, call["time"], copied=turn.role == "assistant"))


def _is_modified_reply(turn: Turn, drafts: list[_Draft]) -> bool:
    """Return whether it is a reply that the agent modified: truncated, or without its reasoning or some of its
    calls."""
    for draft in drafts:
        if draft.turn.role != "assistant":
            continue
        ids = {action.id for action in draft.turn.actions if action.id}
        if ids & {action.id for action in turn.actions}:
            return True
        mine, theirs = turn.text.strip(), draft.turn.text.strip()
        shorter, longer = sorted((mine, theirs), key=len)
        if (not mine and not turn.actions) or (len(shorter) >= _SHORT and shorter in longer) or mine == theirs:
            return True
    return False


def _answer(turn: Turn, drafts: list[_Draft], time: str) -> bool:
    """Store a tool's result with its call; return False if there is no such call."""
    for draft in reversed(drafts):
        wanted = turn.answers
        if any(wanted in (action.id, action.name) for action in draft.turn.actions) and wanted not in draft.results:
            draft.results[str(wanted)] = turn.text
            ran = datetime.fromisoformat(time) - datetime.fromisoformat(draft.time)
            draft.seconds = max(0.0, ran.total_seconds())
            return True
    return False


def _step(number: int, draft: _Draft) -> atif.Step:
    turn, call = draft.turn, draft.call
    if turn.role != "assistant":
        source: Literal["system", "user"] = "system" if turn.role == "system" else "user"
        return atif.Step(step_id=number, timestamp=draft.time, source=source, message=turn.text)
    ids = [action.id or f"call-{number}-{index}" for index, action in enumerate(turn.actions)]
    names = {wanted: known for action, known in zip(turn.actions, ids, strict=True) for wanted in (known, action.name)}
    results = [
        atif.ObservationResult(source_call_id=names[wanted], content=text) for wanted, text in draft.results.items()
    ]
    return atif.Step(
        step_id=number,
        timestamp=draft.time,
        source="agent",
        model_name=call["model"] if call else None,
        message=turn.text,
        reasoning_content=(turn.reasoning or None) if call else None,
        tool_calls=[
            atif.ToolCall(
                tool_call_id=known,
                function_name=action.name,
                arguments=action.arguments if isinstance(action.arguments, dict) else {"raw": action.arguments},
            )
            for action, known in zip(turn.actions, ids, strict=True)
        ]
        or None,
        observation=atif.Observation(results=results) if results else None,
        metrics=_metrics(call) if call else None,
        is_copied_context=True if draft.copied else None,
        llm_call_count=1 if call else 0,
        extra={"gateway_call": call["call"], "seconds": draft.seconds} if call else None,
    )


def _metrics(call: dict[str, Any]) -> atif.Metrics:
    return atif.Metrics(
        prompt_tokens=call["prompt_tokens"],
        completion_tokens=call["completion_tokens"],
        cached_tokens=call["cached_tokens"],
        cost_usd=call["cost_usd"],
        extra={"seconds": call.get("seconds"), **({"estimated": True} if call.get("estimated") else {})},
    )


def artifacts_of(run: Run) -> Iterable[Artifact]:
    """Return the existing files."""
    titles = {
        CALLS: ("application/jsonl", "Calls to language models"),
        TRAJECTORY: ("application/json", "Rollout created from the calls (ATIF)"),
    }
    for name, (kind, title) in titles.items():
        if (run.path / FOLDER / name).is_file():
            yield Artifact(path=f"{FOLDER}/{name}", media_type=kind, producer="gateway", title=title)
