"""The timelines of a run's page: states, resources and events, or the calls of each tool."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from mleredux.models import Sample
from mleredux.models.formats import counted, duration, megabytes, plain, round_duration
from mleredux.plugin.artifact import Event

_TICKS = 400
_TOOLS = 12
_LEAST, _GAP = 0.35, 0.1
"""Width of the shortest bars in percent; bars of a row that are closer than the gap are drawn as a single bar."""
LINE_HEIGHT = 26
_LINE_POINTS = 500
_UNITS = ((7200.0, "hours", 3600.0), (180.0, "minutes", 60.0), (0.0, "seconds", 1.0))
_AXIS_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True)
class Mark:
    """A named value on a scale. `kind` is a CSS class."""

    kind: str
    name: str
    value: str
    x: float


@dataclass(frozen=True)
class Bar:
    """The period of time spent in a state, or in calls of a tool."""

    x: float
    width: float


@dataclass(frozen=True)
class Row:
    """A row of the timeline, for a state or a tool. `kind` is a CSS class; `calls` is empty for a state."""

    kind: str
    name: str
    bars: list[Bar]
    duration: str
    calls: str = ""


@dataclass(frozen=True)
class Tick:
    """An event of the timeline. `kind` is a CSS class."""

    kind: str
    x: float
    title: str


@dataclass(frozen=True)
class Line:
    """A resource over time: a polygon, `x` in thousandths of the width, `y` in pixels of `LINE_HEIGHT`."""

    name: str
    corners: str
    peak: str


@dataclass(frozen=True)
class Timeline:
    """States, resources and events over the duration of a run, or the calls of tools with a `note` on them."""

    rows: list[Row]
    lines: list[Line]
    ticks: list[Tick]
    axis: list[Mark]
    total: str
    note: str = ""


_MARKED = {
    "submission": ("submission", "submission version {number}"),
    "validation": ("validation", "validation: {message}"),
    "notice": ("notice", "time notice"),
    "limit": ("limit", "{limit} limit reached"),
    "signal": ("limit", "{signal}"),
    "retry": ("limit", "{stage} retried"),
    "warning": ("limit", "{message}"),
}


def timeline_of(
    events: list[Event], samples: list[Sample] | None = None, until: datetime | None = None
) -> Timeline | None:
    """Lay out a run's events, from its first state to its last event.

    Args:
        samples: The agent's resource usage since its start.
        until: The current time, if the run is still active.
    """
    states = [event for event in events if event.type == "state"]
    if not states:
        return None
    start = states[0].time.timestamp()
    end = (until or events[-1].time).timestamp()  # the stage that creates this page has not ended yet
    total = max(end - start, 1e-3)
    spent: dict[str, list[tuple[float, float]]] = {}
    for this, ended in zip(states, [*(state.time.timestamp() for state in states[1:]), end], strict=True):
        if ended > this.time.timestamp():
            spent.setdefault(str(this.data.get("state")), []).append((this.time.timestamp(), ended))
    rows = [_row(state, state.replace("_", " "), spans, start, total) for state, spans in spent.items()]
    marked = [(event, event.time.timestamp() - start) for event in events if event.type in _MARKED]
    ticks = [
        Tick(_MARKED[event.type][0], _percent(after, total), f"{duration(after)}: {_text(event)}")
        for event, after in marked
    ]
    began = [event for event in events if event.type == "agent"]
    lines = resource_lines(samples or [], began[0].time.timestamp() - start if began else 0.0, total)
    return Timeline(rows, lines, ticks[:_TICKS], axis_of(total), duration(total))


def _row(kind: str, name: str, spans: list[tuple[float, float]], start: float, total: float, calls: str = "") -> Row:
    bars: list[Bar] = []
    for begun, ended in sorted(spans):
        x, right = min(100 - _LEAST, _percent(begun - start, total)), _percent(ended - start, total)
        if bars and x - bars[-1].x - bars[-1].width < _GAP:
            x, right = bars[-1].x, max(bars[-1].x + bars[-1].width, right)
            bars.pop()
        bars.append(Bar(x, max(_LEAST, round(right - x, 3))))
    seconds = sum(ended - begun for begun, ended in spans)
    return Row(kind, name, bars, duration(seconds) if spans else "", calls)


def _percent(seconds: float, total: float) -> float:
    return round(min(100.0, max(0.0, 100 * seconds / total)), 3)


Acted = tuple[object, object, Sequence[str]]
"""A step as a rollout states it: its timestamp, the seconds for which its code ran, and the tools that it calls."""


def tools_of(steps: Sequence[Acted]) -> Timeline:
    """Lay out the tool calls of a rollout, with a row for each tool; without a time, a call is only counted.

    The calls of a step share its seconds or, if it states none, those until the next step.
    """
    counts = Counter(tool for *_, tools in steps for tool in tools)
    spans: dict[str, list[tuple[float, float]]] = {tool: [] for tool in counts}
    timed = [(at, step) for step in steps if (at := unix_time(step[0])) is not None]
    for (at, (_, stated, tools)), (later, _) in zip(timed, [*timed[1:], *timed[-1:]], strict=True):
        seconds = stated if isinstance(stated, int | float) and 0 <= stated < 1e9 else max(0.0, later - at)
        part = seconds / max(1, len(tools))
        for place, tool in enumerate(tools):
            spans[tool].append((at + place * part, at + (place + 1) * part))
    every = [span for row in spans.values() for span in row]
    start = min((begun for begun, _ in every), default=0.0)
    total = max([1e-3, *(ended - start for _, ended in every)])
    shown = counts.most_common(_TOOLS)
    rows = [_row("tool", tool, spans[tool], start, total, counted(count, "call")) for tool, count in shown]
    note = f"{counted(counts.total(), 'call')} of {counted(len(counts), 'tool')}"
    note += f", of which the {_TOOLS} most frequent are shown." if len(counts) > _TOOLS else "."
    if not every:
        return Timeline(rows, [], [], [], "", f"{note} The rollout has no times, so it is not known when they ran.")
    if untimed := counts.total() - len(every):
        note += f" {untimed:,} of the calls have no time and are not drawn."
    return Timeline(rows, [], [], axis_of(total), duration(total), note)


def unix_time(timestamp: object) -> float | None:
    """Return the Unix time of a rollout's timestamp, which is in UTC if it names no zone; None if it is not valid."""
    try:
        time = datetime.fromisoformat(str(timestamp))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def resource_lines(samples: list[Sample], offset: float, total: float) -> list[Line]:
    """Lay out CPUs, memory and GPUs over the run's duration, if they are known.

    Args:
        offset: Start of the agent, in seconds since the start of the run.
        total: The run's duration in seconds.
    """
    memory = [(sample.seconds, sample.memory_mb) for sample in samples if sample.memory_mb is not None]
    gpus = [(sample.seconds, sample.gpu_percent) for sample in samples if sample.gpu_percent is not None]
    forms: dict[str, Callable[[float], str]] = {"CPUs": partial(plain, digits=2), "memory": megabytes}
    drawn = zip((*forms.items(), ("GPUs", "{:.0f} %".format)), (cpus(samples), memory, gpus), strict=True)
    return [_area(name, values, form, offset, total) for (name, form), values in drawn if len(values) > 1]


def cpus(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the CPUs in use between samples, as pairs of a time in seconds and CPU seconds per second."""
    known = [(sample.seconds, sample.cpu_seconds) for sample in samples if sample.cpu_seconds is not None]
    return [
        (after, max(0.0, (used - before_used) / (after - before)))
        for (before, before_used), (after, used) in itertools.pairwise(known)
        if after > before
    ]


def _area(
    name: str, values: list[tuple[float, float]], form: Callable[[float], str], offset: float, total: float
) -> Line:
    values = values[:: max(1, len(values) // _LINE_POINTS)]
    peak = max(value for _, value in values)

    def x(seconds: float) -> float:
        return round(min(1000.0, max(0.0, 1000 * (offset + seconds) / total)), 1)

    top = [f"{x(seconds)},{LINE_HEIGHT - (LINE_HEIGHT - 2) * value / (peak or 1):.1f}" for seconds, value in values]
    ends = f"{x(values[0][0])},{LINE_HEIGHT}", f"{x(values[-1][0])},{LINE_HEIGHT}"
    return Line(name, " ".join([ends[0], *top, ends[1]]), f"≤ {form(peak)}")


def unit_of(longest: float) -> tuple[str, float]:
    """Return a suitable unit for this number of seconds, and its length in seconds."""
    return next((name, divisor) for least, name, divisor in _UNITS if longest >= least)


def axis_of(total: float) -> list[Mark]:
    """Return about five round times from 0 to `total` seconds."""
    step = next((step for step in _AXIS_STEPS if total / step <= 6), 86400 * math.ceil(total / 86400 / 6))
    return [
        Mark("axis", round_duration(i * step), "", round(100 * i * step / total, 3))
        for i in range(int(total / step) + 1)
    ]


def _text(event: Event) -> str:
    data = {name: event.data.get(name, "") for name in ("number", "message", "limit", "signal", "stage")}
    return _MARKED[event.type][1].format(**data)[:200]
