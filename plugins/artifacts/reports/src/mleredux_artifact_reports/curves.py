"""The score of one or several runs over time: for a terminal, as PNG or SVG, or as JSON."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError, file_errors

from mleredux_artifact_reports.timeline import unit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from mleredux.plugin.artifact import Report, Run, VersionScore

FORMATS = (".png", ".svg", ".pdf")
_MEDALS = {"gold": "#b98900", "silver": "#7c8794", "bronze": "#a8602b", "median": "#58626f"}


@dataclass(frozen=True)
class Curve:
    """One run's score over time.

    Attributes:
        points: Seconds after the agent's start, and score; versions without a score are omitted.
        end: The agent's run time in seconds.
    """

    run: str
    task: str
    label: str
    scores: tuple[VersionScore, ...]
    points: tuple[tuple[float, float], ...]
    end: float
    report: Report

    def steps(self) -> tuple[list[float], list[float]]:
        """Return the score that counted at each time, up to the end: seconds and scores."""
        seconds, scores = zip(*self.points, strict=True)
        return [*seconds, max(self.end, seconds[-1])], [*scores, scores[-1]]


def curve_of(run: Run) -> Curve:
    """Return the curve of a graded run.

    Raises:
        MlereduxError: The run has no graded submission.
    """
    report = run.report
    scores = tuple(run.scores)
    points = tuple(
        (fact.seconds, fact.score) for fact in scores if fact.score is not None and math.isfinite(fact.score)
    )
    if report is None or not points:
        raise MlereduxError(
            f"Run {run.id} has no graded submission, so there is no curve.", hint="Run `mleredux runs show` to see why."
        )
    label = f"{run.spec.agent} on {run.spec.task}, seed {run.spec.seed} ({run.id.rpartition('-')[2]})"
    end = run.outcome.seconds if run.outcome else points[-1][0]
    return Curve(run.id, run.spec.task, label, scores, points, end, report)


def as_json(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return the object that `--json` prints."""
    return [
        {
            "run": curve.run,
            "task": curve.task,
            "label": curve.label,
            "metric": curve.report.metric,
            "is_lower_better": curve.report.is_lower_better,
            "seconds": curve.end,
            "versions": [fact.model_dump(mode="json") for fact in curve.scores],
        }
        for curve in curves
    ]


def draw_in_terminal(curves: Sequence[Curve], width: int = 90, height: int = 22) -> str:
    """Return the plot as text."""
    import plotext

    unit, divisor = unit_of(max(curve.end for curve in curves))
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(min(width, 120), height)
    scores = [score for curve in curves for _, score in curve.points]
    margin = 0.05 * (max(scores) - min(scores)) or 0.05 * abs(scores[0]) or 0.05
    # the legend is in the upper corner: leave room above the curves
    named = len(curves) > 1
    top = max(scores) + margin * (1 + 2.5 * len(curves) * named)
    plotext.ylim(min(scores) - margin, top)
    plotext.xlim(0, max(curve.end for curve in curves) / divisor)
    for curve in curves:
        xs, ys = _stairs(*curve.steps())
        plotext.plot([x / divisor for x in xs], ys, label=curve.label if named else None)
    plotext.xlabel(f"{unit.capitalize()} of agent run time")
    plotext.title(_title(curves))
    drawing: str = plotext.build()
    return "\n".join(line.rstrip() for line in plotext.uncolorize(drawing).splitlines())


def save(curves: Sequence[Curve], path: Path) -> None:
    """Write the plot to a file, in the format of its extension.

    Raises:
        MlereduxError: The format is not supported, or the file can't be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise MlereduxError(f"{path} does not have a supported extension.", hint=f"Use one of {', '.join(FORMATS)}.")
    figure = draw(curves)
    with file_errors(MlereduxError, f"Cannot write {path}", "Choose another path."):
        figure.savefig(path, dpi=150)


def draw(curves: Sequence[Curve]) -> Figure:
    """Plot the score that counted at each time, with a dot per version, and thresholds if all runs share a task."""
    from matplotlib.figure import Figure

    unit, divisor = unit_of(max(curve.end for curve in curves))
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for curve in curves:
        xs, ys = curve.steps()
        (line,) = axes.step([x / divisor for x in xs], ys, where="post", label=curve.label)
        axes.plot([x / divisor for x in xs[:-1]], ys[:-1], "o", markersize=4, color=line.get_color())
    if len({curve.task for curve in curves}) == 1:
        for name, colour in _MEDALS.items():
            if (value := getattr(curves[0].report, f"{name}_threshold")) is not None:
                axes.axhline(value, color=colour, linewidth=1, linestyle="--", label=name, zorder=0)
    axes.set_xlabel(f"{unit.capitalize()} of agent run time")
    axes.set_ylabel(_metric(curves))
    axes.set_title(_title(curves))
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
    return figure


def _stairs(xs: list[float], ys: list[float]) -> tuple[list[float], list[float]]:
    across = [x for pair in zip(xs[1:], xs[1:], strict=True) for x in pair]
    up = [y for before, after in itertools.pairwise(ys) for y in (before, after)]
    return [xs[0], *across], [ys[0], *up]


def _metric(curves: Sequence[Curve]) -> str:
    return " / ".join(sorted({f"{curve.report.metric}, {curve.report.better} is better" for curve in curves}))


def _title(curves: Sequence[Curve]) -> str:
    if len(curves) == 1:
        return f"{curves[0].label} ({_metric(curves)})"
    tasks = sorted({curve.task for curve in curves})
    return f"Score over time: {', '.join(tasks)} ({_metric(curves)})" if len(tasks) < 4 else "Score over time"
