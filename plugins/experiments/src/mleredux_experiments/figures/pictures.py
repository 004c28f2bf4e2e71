"""Plots of an analysis: each has a question as its title, and one sentence that answers it."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import numpy as np
from mleredux.models.formats import counted, plain

from mleredux_experiments.failures import CATEGORIES
from mleredux_experiments.figures.tables import cut
from mleredux_experiments.inference.ranking import profile
from mleredux_experiments.results.measures import MEASURES, cells, time_unit
from mleredux_experiments.results.scores import ORDER, REACHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mleredux_experiments.analysis.analysis import Analysis
    from mleredux_experiments.analysis.curves import Curve
    from mleredux_experiments.inference.difference import Comparison

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's colors, which people with color vision deficiency can distinguish."""
_OUTCOMES = {"gold": "#c9a227", "silver": "#9aa5b1", "bronze": "#b5713c", "above median": "#56b4e9", "valid": "#a6cee3"}
_FAILURES = (
    "#8c2d04", "#d55e00", "#fdae6b", "#7b3294", "#c2a5cf", "#cc79a7", "#e7298a", "#1b7837", "#7fbc41", "#444444",
    "#888888", "#bbbbbb",
)  # fmt: skip
"""Colors of the failures that occur, in their order."""
_MOST_TASKS, _LABEL, _WIDTH = 40, 44, 7.2
_lock = threading.Lock()
"""Held while Matplotlib's settings, which are global, are changed."""
_SIZES = (8, 12, 22, 40, 75, 150)
"""Numbers of tasks for which power is shown."""


@dataclass(frozen=True)
class Picture:
    """A figure with its question, and the sentence that answers it.

    Attributes:
        name: Its file name without the ending.
        draw: Creates the figure, which costs much more than the answer.
    """

    name: str
    question: str
    answer: str
    draw: Callable[[], Figure]

    @cached_property
    def figure(self) -> Figure:
        """The figure, drawn on first use."""
        return self.draw()

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for notebooks."""
        content = io.BytesIO()
        self.figure.savefig(content, format="png", dpi=90)
        return content.getvalue()

    def svg(self) -> str:
        """Return the figure as SVG, the same bytes for the same data."""
        import matplotlib as mpl

        text = io.StringIO()
        with _lock, mpl.rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none", "font.family": "sans-serif"}):
            self.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]

    def save(self, path: Path) -> None:
        """Write the figure; the format is taken from the name: .svg, .png or .pdf."""
        if path.suffix == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            self.figure.savefig(path, dpi=150)


def pictures(analysis: Analysis) -> Iterator[Picture]:
    """Yield all plots that the data allow, except those that would be the same for all arms and tasks."""
    for number, comparison in enumerate(analysis.comparisons):
        if not any(task.difference for task in comparison.tasks):
            continue
        name = "differences" if len(analysis.comparisons) == 1 else f"differences-{number + 1}"
        question = f"On which tasks is {comparison.b} better than {comparison.a}?"
        yield Picture(name, question, comparison.sentence, partial(forest, comparison))
    for make in (_time, _cost, _attempts, _profiles, _validation, _outcomes, _power):
        if (picture := make(analysis)) is not None:
            yield picture


def _axes(height: float = 3.6, labels: Sequence[str] = (), legend_rows: int = 0) -> tuple[Figure, Axes]:
    """Return a figure with fixed margins, in inches for a font of 8 points: a layout engine draws everything twice."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    wide = [[char in "mwMW%@" or east_asian_width(char) in "WF" for char in name] for name in labels]
    widths = [len(name) + sum(own) + 0.4 * sum(map(str.isupper, name)) for name, own in zip(labels, wide, strict=True)]
    left, below = min(4.4, 0.2 + 0.07 * max(widths)) if widths else 0.75, 0.55 + 0.2 * legend_rows
    axes = figure.add_axes((left / _WIDTH, below / height, 1 - (left + 0.2) / _WIDTH, 1 - (below + 0.15) / height))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def forest(pair: Comparison) -> Figure:
    """Plot the differences of the tasks, the largest first, below their mean and its interval."""
    tasks = sorted(pair.tasks, key=lambda task: abs(task.difference), reverse=True)
    tasks = sorted(tasks[:_MOST_TASKS], key=lambda task: task.difference)
    names = [cut(task.task, _LABEL) for task in tasks]
    names.append(f"all {len(pair.tasks)} tasks" if len(pair.tasks) > 1 else "mean")
    figure, axes = _axes(1.6 + 0.2 * (len(tasks) + 2), names, 1)
    places, (unit, factor) = np.arange(len(tasks)), pair.shown_unit
    axes.scatter([task.difference * factor for task in tasks], places, color=COLORS[0], s=22, label="observed")
    shrunken = [task.shrunken * factor for task in tasks]
    axes.scatter(shrunken, places, color=COLORS[1], marker="|", s=60, label="estimated with all tasks")
    top = len(tasks) + 0.5
    if pair.interval is not None:
        axes.plot([end * factor for end in pair.interval[:2]], [top, top], color="black", linewidth=2)
    mean = pair.difference * factor
    axes.scatter([mean], [top], color="black", marker="D", s=36, label="mean, with its interval", zorder=3)
    axes.axvline(0, color="#555555", linewidth=0.8)
    if margin := pair.margin * factor:
        axes.axvspan(-margin, margin, color="#eeeeee", zorder=0, label="too small to matter")
    axes.set_yticks([*places, top], names, fontsize=8)
    axes.set_xlabel(f"{pair.b} minus {pair.a}, {unit}")
    figure.legend(loc="lower center", fontsize=8, ncols=4, frameon=False)
    return figure


def _differing(curves: Iterable[tuple[str, Curve | None]]) -> list[tuple[str, Curve]]:
    """Return the curves that exist, by arm; none if all have the same value everywhere."""
    existing = [(name, curve) for name, curve in curves if curve is not None]
    return existing if len({y for _, curve in existing for y in curve.y}) > 1 else []


def _drawn(draw: Callable[[Axes], None], height: float = 3.6) -> Figure:
    """Return a figure with a legend, in which a function draws."""
    figure, axes = _axes(height)
    draw(axes)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _lines(curves: Sequence[tuple[str, Curve]], label: str, scale: float, axes: Axes) -> None:
    for (name, curve), color in zip(curves, cycle(COLORS)):
        x = np.array(curve.x) * scale
        axes.plot(x, curve.y, color=color, label=name, drawstyle="steps-post")
        axes.fill_between(x, curve.low, curve.high, color=color, alpha=0.12, step="post", linewidth=0)
    axes.set(xlabel=label, ylabel="runs with a medal, %", ylim=(-2, 102))


def _time(analysis: Analysis) -> Picture | None:
    longest = max((arm.time.x[-1] for arm in analysis.arms if arm.time), default=0)
    unit, scale = time_unit(longest)
    curves = _differing((arm.name, arm.time) for arm in analysis.arms)
    if not curves:
        return None
    shares = []
    for arm in analysis.arms:
        if arm.time is not None:
            first = arm.first_medal.median if arm.first_medal else None
            half = f", half of its runs had one after {plain(first * scale, 3)} {unit}" if first is not None else ""
            shares.append(f"{arm.name} held a medal for {arm.time.area:.0f} % of the time{half}")
    draw = partial(_lines, curves, unit, scale)
    return Picture("time", "How soon do medals come?", f"{'; '.join(shares)}.", partial(_drawn, draw))


def _cost(analysis: Analysis) -> Picture | None:
    curves = _differing((arm.name, arm.cost) for arm in analysis.arms)
    if not curves:
        return None
    rates = [f"{arm.name} {plain(arm.per_dollar[0], 2)}" for arm in analysis.arms if arm.cost and arm.per_dollar]
    draw = partial(_lines, curves, "dollars", 1)
    return Picture("cost", "What does a medal cost?", f"Medals per dollar: {', '.join(rates)}.", partial(_drawn, draw))


def _attempts(analysis: Analysis) -> Picture | None:
    curves = [(arm.name, arm.attempts) for arm in analysis.arms if arm.attempts and len(arm.attempts.any_of) > 1]
    if len({share for _, curve in curves for share in (*curve.any_of, *curve.all_of)}) < 2:
        return None

    def draw(axes: Axes) -> None:
        for (name, curve), color in zip(curves, cycle(COLORS)):
            k, (low, high, *_) = np.arange(1, len(curve.any_of) + 1), np.transpose(curve.interval)
            axes.plot(k, curve.any_of, color=color, marker="o", label=f"{name}: any of k")
            axes.fill_between(k, low, high, color=color, alpha=0.12)
            axes.plot(k, curve.all_of, color=color, marker="v", linestyle=":", label=f"{name}: all of k")
            if curve.chosen is not None:
                own = f"{name}: best by own validation"
                axes.plot(k, curve.chosen, color=color, marker="s", linestyle="--", label=own)
        title = MEASURES[analysis.measure.partition("@")[0]].title
        axes.set(xlabel="attempts k", ylabel=f"tasks with {title}, %", ylim=(-2, 102))
        most = max(len(curve.any_of) for _, curve in curves)
        axes.set_xticks(np.arange(1, most + 1, -(-most // 12)))

    changes = [f"{name} goes from {curve.any_of[0]:.0f} % to {curve.any_of[-1]:.0f} %" for name, curve in curves]
    answer = f"With {len(curves[0][1].any_of)} attempts instead of one, {'; '.join(changes)} of tasks."
    return Picture("attempts", "Are several attempts worth it?", answer, partial(_drawn, draw))


def _profiles(analysis: Analysis) -> Picture | None:
    what = MEASURES["percentile"]
    rows = analysis.results.arms
    if not any(row.percentile is not None for row in analysis.results.rows):
        return None
    thresholds = np.linspace(0, 100, 101)
    values = {arm.name: list(cells(rows[arm.name], what).values()) for arm in analysis.arms}
    shares = {name: profile(own, thresholds - 1e-9) for name, own in values.items() if own}

    def draw(axes: Axes) -> None:
        for name, color in zip(values, cycle(COLORS)):
            if name in shares:
                axes.plot(thresholds, shares[name], color=color, label=name, drawstyle="steps-pre")
        axes.set(xlabel="percentile of the leaderboard", ylabel="runs at or above it, %", ylim=(-2, 102))

    reached = ", ".join(f"{share[50]:.0f} % of runs of {name}" for name, share in shares.items())
    answer = f"The upper half of the leaderboard is reached by {reached}."
    return Picture("profiles", "How good are the runs as a whole?", answer, partial(_drawn, draw))


def _validation(analysis: Analysis) -> Picture | None:
    arms = [(arm.name, arm.selection) for arm in analysis.arms if arm.selection and arm.selection.points]
    if not arms:
        return None

    def draw(axes: Axes) -> None:
        for (name, selection), color in zip(arms, cycle(COLORS)):
            test, own = [p.test for p in selection.points], [p.validation for p in selection.points]
            axes.scatter(own, test, s=18, color=color, label=name, alpha=0.8)
        ends = axes.get_xlim()
        axes.plot(ends, ends, color="#555555", linewidth=0.8)
        axes.set(xlabel="the agent's own validation (0: median, 1: gold)", ylabel="test (0: median, 1: gold)")

    biases = [
        f"{name} is too {'optimistic' if selection.gap > 0 else 'pessimistic'} by {100 * abs(selection.gap):.0f} %"
        for name, selection in arms
        if selection.gap
    ]
    answer = "Points below the line are runs that were too optimistic"
    answer += f"; on average, in units of the distance from median to gold, {'; '.join(biases)}." if biases else "."
    return Picture("validation", "Can the agents trust their own validation?", answer, partial(_drawn, draw, 4.6))


def _outcomes(analysis: Analysis) -> Picture | None:
    causes = []
    for arm in analysis.arms:
        failed = {name: count for name, count in arm.outcomes.items() if name not in REACHED}
        most = max(failed, key=failed.__getitem__, default=None)
        frequency = f"{most}, {failed[most]} of {counted(sum(arm.outcomes.values()), 'run')}" if most else "none"
        causes.append(f"{arm.name}: {frequency}")
    answer = f"Most frequent failures: {'; '.join(causes)}.{_differing_failures(analysis)}"
    return Picture("outcomes", "How do runs end, and why do they fail?", answer, partial(_bars, analysis))


def _bars(analysis: Analysis) -> Figure:
    names = list(dict.fromkeys(name for arm in analysis.arms for name in arm.outcomes))
    names.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    columns, lines = 4, -(-len(names) // 4)
    arms = [cut(arm.name, _LABEL) for arm in analysis.arms]
    figure, axes = _axes(1.2 + 0.4 * len(arms) + 0.2 * lines, arms, lines)
    left, places = np.zeros(len(analysis.arms)), np.arange(len(analysis.arms))[::-1]
    totals = np.array([sum(arm.outcomes.values()) for arm in analysis.arms])
    colors = _OUTCOMES | dict(zip((name for name in names if name not in REACHED), cycle(_FAILURES)))
    for name in names:
        share = 100 * np.array([arm.outcomes.get(name, 0) for arm in analysis.arms]) / totals
        axes.barh(places, share, left=left, color=colors[name], label=name, height=0.7, ec="white", lw=0.4)
        left += share
    axes.set_yticks(places, arms, fontsize=8)
    axes.set(xlabel="runs, %", xlim=(0, 100))
    figure.legend(loc="lower center", fontsize=8, ncols=columns, frameon=False)
    return figure


def _differing_failures(analysis: Analysis) -> str:
    """Return the failures whose frequency differs between two arms, as text."""
    differences = [
        f"{two.b} has {CATEGORIES[row.category].words} {'more' if row.difference > 0 else 'less'} often than {two.a} "
        f"({row.b:.0f} and {row.a:.0f} % of runs)"
        for two in analysis.comparisons
        for row in two.failures
        if row.q <= analysis.alpha
    ]
    return f" By more than chance: {'; '.join(differences)}." if differences else ""


def _power(analysis: Analysis) -> Picture | None:
    if not analysis.comparisons:
        return None
    pair = analysis.comparisons[0]
    sample, least, count, (unit, factor) = pair.sample, pair.least, len(pair.tasks), pair.shown_unit
    if not sample.variance.of_mean(sample.seeds):
        return None
    here = sample.detectable

    def draw(axes: Axes) -> None:
        tasks = sorted({least, *(n for n in _SIZES if n > least), *((count,) if count > least else ())})
        own = max(round(sample.seeds), 1)
        for seeds, color in zip(sorted({own, 3 * own}) if sample.variance.separated else [own], cycle(COLORS)):
            smallest = [(replace(sample, tasks=n, seeds=seeds).detectable or np.nan) * factor for n in tasks]
            axes.plot(tasks, smallest, color=color, label=f"{counted(seeds, 'seed')} a task")
        if here is not None:
            axes.scatter([count], [here * factor], color="black", marker="D", zorder=3, label="these runs")
        reference, line = ("margin", pair.margin) if sample.margin else ("observed difference", abs(pair.difference))
        axes.axhline(line * factor, color="#555555", linewidth=0.8, linestyle="--", label=f"the {reference}")
        bound = f"margin of {sample.rule}" if sample.margin else "detectable difference"
        axes.set(xlabel="tasks", ylabel=f"smallest {bound}, {unit}", xscale="log")
        axes.set_xticks(tasks, list(map(str, tasks)))
        axes.minorticks_off()

    these = f"{counted(count, 'task')} detect{'s' * (count == 1)}"
    answer = f"{these} {sample.goal}{plain((here or 0) * factor, 3)} {unit} with a power of 80 %."
    if here is None:
        answer = f"{these} {sample.nothing} that is possible; a decision needs {least} tasks or more."
    wanted = "small a margin can be shown" if sample.margin else "large must a difference be to be detected"
    return Picture("power", f"How {wanted}?", answer, partial(_drawn, draw))
