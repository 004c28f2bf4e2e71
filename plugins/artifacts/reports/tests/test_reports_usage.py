"""What models used, whatever the agent claims, and whether a score can be trusted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux.models import Ledger
from mleredux.models.verdict import ResultVerdict
from mleredux.plugin.artifact import LlmUse
from mleredux_artifact_reports import mleredux_produce_artifacts, produce_page
from mleredux_artifact_reports.rollouts import with_measured_usage
from mleredux_rollout import AgentInfo, Metrics, Step, Trajectory, dump_rollout, parse_rollout

FIGURES = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
MAYBE_TIMES = st.none() | st.integers(0, 59).map(lambda second: f"2026-01-01T00:00:{second:02}+00:00")
CLAIMS = st.none() | st.builds(Metrics, prompt_tokens=st.integers(0, 99), cost_usd=st.floats(0, 9))


def step(number: int, facts: tuple[str, Any, Any, int | None]) -> Step:
    source, time, metrics, calls = facts
    is_call = source == "agent" and calls != 0
    return Step(
        step_id=number,
        source=source,
        timestamp=time,
        message="",
        metrics=metrics if is_call else None,
        llm_call_count=calls if source == "agent" else None,
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["agent", "user", "system"]), MAYBE_TIMES, CLAIMS, st.sampled_from([None, 0, 1])),
    min_size=1,
    max_size=8,
).map(lambda facts: [step(number, one) for number, one in enumerate(facts, start=1)])
CALLS = st.lists(
    st.tuples(MAYBE_TIMES, st.integers(1, 999), st.integers(0, 99), st.floats(1e-6, 1)), max_size=8
)  # fmt: skip


def trace(steps: list[Step], **more: Any) -> Trajectory:
    return Trajectory(agent=AgentInfo(name="some", version="1"), steps=steps, **more)


@settings(deadline=None)
@given(
    steps=STEPS,
    parts=st.none() | st.lists(STEPS, min_size=1, max_size=2),
    calls=CALLS,
    lost=st.integers(0, 50),
    priced=st.booleans(),
)
def test_the_steps_add_up_to_the_totals(steps: Any, parts: Any, calls: Any, lost: int, priced: bool) -> None:
    recorded = [
        Step(
            step_id=number,
            source="agent",
            timestamp=time,
            message="",
            metrics=Metrics(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=0, cost_usd=cost),
        )
        for number, (time, prompt, completion, cost) in enumerate(calls, start=1)
    ]
    llm = LlmUse(
        calls=len(calls),
        prompt_tokens=sum(prompt for _, prompt, _, _ in calls) + lost,
        completion_tokens=sum(completion for _, _, completion, _ in calls),
        cost_usd=round(sum(cost for *_, cost in calls) + lost * 1e-3, 9) if priced else None,
    )
    inner = parts and [trace(part, trajectory_id=f"part-{number}") for number, part in enumerate(parts)]
    made = with_measured_usage(trace(steps, subagent_trajectories=inner), llm, trace(recorded) if recorded else None)
    made = parse_rollout(dump_rollout(made))
    assert made.final_metrics is not None
    own = [one for one in steps if one.source == "agent" and one.llm_call_count != 0]
    for name in FIGURES:
        total = getattr(made.final_metrics, f"total_{name}")
        assert total == getattr(llm, name)
        used = [getattr(one.metrics, name) or 0 for one in made.steps if one.metrics is not None]
        assert sum(used) == pytest.approx((total or 0) if own else 0, abs=1e-6)
    assert not any(one.metrics for part in made.subagent_trajectories or () for one in part.steps)


def test_calls_belong_to_the_steps_that_reported_as_many() -> None:
    claimed = Metrics(prompt_tokens=1, logprobs=[-0.5])
    steps = [step(1, ("user", None, None, None)), *(step(n, ("agent", None, claimed, None)) for n in (2, 3))]
    recorded = [step(n, ("agent", None, Metrics(prompt_tokens=10 * n, cost_usd=0.5), None)) for n in (1, 2)]
    made = with_measured_usage(trace(steps), LlmUse(calls=2, prompt_tokens=30, cost_usd=1.0), trace(recorded))
    assert [one.metrics and one.metrics.prompt_tokens for one in made.steps] == [None, 10, 20]
    assert [one.metrics.logprobs for one in made.steps if one.metrics] == [[-0.5], [-0.5]]


def test_calls_belong_to_the_step_that_ended_after_them() -> None:
    times = [f"2026-01-01T00:00:{second}+00:00" for second in (10, 20, 30)]
    steps = [step(n, ("agent", time, None, None)) for n, time in enumerate(times, start=1)]
    ends = [f"2026-01-01T00:00:{second}+00:00" for second in (12, 19, 20, 59)]
    recorded = [step(n, ("agent", end, Metrics(prompt_tokens=1), None)) for n, end in enumerate(ends, start=1)]
    made = with_measured_usage(trace(steps), LlmUse(calls=4, prompt_tokens=4), trace(recorded))
    assert [one.metrics and one.metrics.prompt_tokens for one in made.steps] == [None, 3, 1]


@pytest.mark.parametrize("exposed", [True, False])
@pytest.mark.parametrize("status", ["verified", "not reproducible", "not checked"])
def test_doubts_about_a_score_are_stated_beside_it(make_run: Any, exposed: bool, status: str) -> None:
    verdict = ResultVerdict(status=status, why="the reason")
    run = make_run(report={"ledger": Ledger(answers_exposed=exposed), "verdict": verdict})
    produce_page(run, tuple(mleredux_produce_artifacts(run)))
    shown = (run.path / "report.html").read_text(encoding="utf-8").partition('class="verdict"')[2].partition("</ul>")[0]
    assert ("Unverified" in shown) == (exposed and status == "not checked")
    assert (f"{status.capitalize()}: the reason" in shown) == (status != "not checked")
