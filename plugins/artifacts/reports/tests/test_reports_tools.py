"""Tool calls are drawn when they ran, a row for each tool, for any number of calls and any times."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_artifact_reports.timeline import tools_of
from mleredux_rollout import AgentInfo, Step, StepExtra, ToolCall, Trajectory, dump_rollout

from .test_reports_page import page_of

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SHAPES = [(0, 3, True), (1, 1, True), (1, 1, False), (10_000, 4, True), (10_000, 30, True), (10_000, 4, False)]


@pytest.mark.parametrize(("calls", "tools", "timed"), SHAPES)
def test_tool_calls_are_drawn_with_a_row_for_each_tool(make_run: Any, calls: int, tools: int, timed: bool) -> None:
    run, steps = make_run(), [Step(step_id=1, source="user", message="Solve it.")]
    for number in range(calls):
        call = ToolCall(tool_call_id=f"c{number}", function_name=f"tool_{number % tools}", arguments={})
        time = (BASE + timedelta(seconds=5 * number)).isoformat() if timed else None
        extra = StepExtra(seconds=2).as_extra() if number % 2 else None
        fields: dict[str, Any] = {"timestamp": time, "tool_calls": [call], "extra": extra, "message": "Act."}
        steps.append(Step(step_id=number + 2, source="agent", **fields))
    own = Trajectory(agent=AgentInfo(name="a", version="1"), steps=steps)
    (run.output_dir / "rollout" / "trajectory.json").write_bytes(dump_rollout(own))
    page = page_of(run)
    text = " ".join(page.sections["tools"].split())
    drawn = [found for tag, found in page.elements if tag == "rect" and found.get("class") == "bar tool"]
    assert ("The agent called no tools." in text) == (calls == 0)
    if calls:
        assert f"{calls:,} call{'s' if calls > 1 else ''} of {min(tools, calls)} tool" in text
        assert all(f"tool_{number} " in text for number in range(min(tools, calls, 4)))
        assert (f"{-(-calls // tools):,} call" in text) and ("12 most frequent" in text) == (tools > 12)
    assert bool(drawn) == (timed and calls > 0) and len(drawn) < 12 * 300
    assert ("has no times" in text) == (calls > 0 and not timed)
    if calls == 10_000 and tools == 4 and timed:  # every second call takes 2 s, the others the 5 s until the next one
        assert text.count("3 h 28 min") == 2 and text.count("1 h 23 min") == 2


odd_times = st.sampled_from(
    [None, "", "soon", "2026-01-01", "2026-01-01T10:00:00", "2026-01-01T10:00:03Z", 7, "9999-12-31T23:59:59-14:00"]
)
odd_seconds = st.sampled_from([None, -1, float("nan"), float("inf"), 10**30, "3", True, 0, 2.5])


@given(st.lists(st.tuples(odd_times, odd_seconds, st.lists(st.sampled_from("abc"), max_size=3)), max_size=8))
def test_tool_calls_with_any_times_are_counted_and_drawn_in_order(steps: list[Any]) -> None:
    drawing = tools_of(steps)
    names = [tool for *_, tools in steps for tool in tools]
    assert {row.name: row.calls for row in drawing.rows} == {
        name: f"{names.count(name)} call{'s' if names.count(name) > 1 else ''}" for name in names
    }
    for row in drawing.rows:
        assert all(bar.x >= 0 and bar.width >= 0.35 and bar.x + bar.width <= 100.001 for bar in row.bars)
        assert all(one.x + one.width <= other.x for one, other in itertools.pairwise(row.bars))
