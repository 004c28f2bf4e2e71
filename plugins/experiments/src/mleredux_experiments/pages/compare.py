"""The page that compares arms of an experiment, or of selected runs."""

from __future__ import annotations

import base64
import io
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.experiment import Plan
from mleredux.plugin.page import Download, StoredExperiment, Visit

from mleredux_experiments.analysis.analysis import Analysis
from mleredux_experiments.execution.record import FOLDER, RECORD_FILE, Record, digest_of, open_record
from mleredux_experiments.figures.pictures import Picture, pictures
from mleredux_experiments.figures.tables import analysis_tables, cell
from mleredux_experiments.pages.curves import score_charts
from mleredux_experiments.results.measures import MEASURES, measure
from mleredux_experiments.results.scores import TaskScores, task_scores
from mleredux_experiments.results.sources import Stamps, load_stamped, stamps_of
from mleredux_experiments.results.table import Row
from mleredux_experiments.results.uniformity import ABOUT_LIMITS, differing_limits, limit_text

MOST_RUNS = 5_000
MOST_FILTERED = 200
"""Maximum number of runs selected by filters, the newest first, so that a page renders quickly regardless of their
total."""
_FILTERS = ("status", "task", "agent", "seed", "medal", "verdict", "cause", "experiment", "arm")
_KEPT = 8
_lock = threading.Lock()


@dataclass(frozen=True)
class Pair:
    """Runs of one task and seed, with one run (or None) per arm, and whether their medals differ."""

    task: str
    seed: int
    runs: tuple[Row | None, ...]
    flipped: bool


class Line(NamedTuple):
    """An arm in the first table: its figures as text, and whether it is the best by the measure."""

    arm: str
    runs: int
    score: str
    percentile: str
    medals: str
    limits: str
    leads: bool


def compare(visit: Visit) -> dict[str, Any] | Download:
    """Compare the arms of the runs that the URL selects: by `run`, or by the filters of the list; with a `measure`.

    Plots and further tables, which take most of the time, are the part `analysis` of the page. Each plot is drawn when
    it is visible: `plot` in the URL selects it.

    Raises:
        MlereduxError: No runs are selected, or they are not comparable.
        NotFound: The analysis has no such plot.
    """
    filters = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    wanted = {name: ["" if value == "none" else value for value in values] for name, values in filters.items()}
    chosen, left, record = visit.query.get("run"), "", None
    if "experiment" in wanted and not visit.text("all"):
        record = record_of(visit, visit.text("experiment"))
    if chosen:
        visit.rows(len(chosen), id=chosen)  # reads them at once
        paths = [visit.open(run).path for run in chosen]
    elif record is not None:
        paths = list(readable(visit, visit.rows(MOST_RUNS, "", **wanted)))
    elif wanted or visit.text("q") or visit.text("all"):
        rows = list(visit.rows(MOST_FILTERED + 1, visit.text("q")[:500], **wanted))
        paths = list(readable(visit, rows[:MOST_FILTERED]))
        left = f"Only the newest {MOST_FILTERED} of these runs are compared." if len(rows) > MOST_FILTERED else ""
    else:
        raise MlereduxError("No runs are selected.", hint="Select runs of two agents in the list of runs.")
    plot, whole = visit.text("plot"), visit.static or visit.text("part") == "analysis"
    analysis = analysis_of(paths, record, visit.text("measure") or None, whole or bool(plot))
    if plot:
        return image(analysis, plot)
    kept = {name: values for name, values in visit.query.items() if name in (*_FILTERS, "run", "q", "all")}
    address = None if visit.static else partial(visit.link, "compare", measure=analysis.measure, **kept)
    values, scores = shown(analysis, address, whole), task_scores(analysis.results.arms)
    about_limits = [note for note in values["notes"] if note.startswith(ABOUT_LIMITS)]
    return {
        **values,
        "whole": whole,
        "charts": list(score_charts(analysis.results.arms)),
        "experiment": record.name if record else None,
        "lines": list(lines(analysis, scores)),
        "scores": scores,
        "tables": values["tables"][1:],  # without the scores, which the page already shows
        "left": left,
        "notes": [note for note in values["notes"] if note not in about_limits],
        "about_limits": about_limits,
        "measures": [measure for measure in MEASURES.values() if measure.averaged or len(scores) == 1],
        "kept": kept,
        "pairs": list(pairs(analysis)),
    }


def lines(analysis: Analysis, scores: Sequence[TaskScores]) -> Iterator[Line]:
    """Yield the arms, the best by the measure first; those without it follow in the order of the analysis."""
    differing = differing_limits(analysis.results)
    ranked = _ranked(analysis, scores)
    for arm in dict.fromkeys((*ranked, *analysis.results.arms)):
        rows, estimates = analysis.results.arms[arm], analysis.arm(arm).estimates
        rank, medals = estimates.get("percentile"), estimates.get("any_medal")
        limits = [f"{key.removeprefix('limits.')} {limit_text(key, own[arm])}" for key, own in differing.items()]
        own = [cell for task in scores for cell in task.arms if cell.arm == arm]
        yield Line(
            arm=arm,
            runs=sum(row.counts for row in rows),
            score=own[0].text.rpartition(" (")[0] if len(own) == 1 else "",
            percentile=f"{rank.mean:.1f}" if rank else "–",
            medals=f"{medals.mean:.0f}" if medals else "–",
            limits=", ".join(limits),
            leads=arm == _leader(analysis, scores, ranked),
        )


def _ranked(analysis: Analysis, scores: Sequence[TaskScores]) -> dict[str, float]:
    """Return the means of arms by the measure, the best first, with the sign that makes smaller values better.

    Scores, which are not averaged over tasks, are ranked if there is only one task.
    """
    what = measure(analysis.measure)
    lower, means = what.lower, {arm.name: own.mean for arm in analysis.arms if (own := arm.estimates.get(what.name))}
    if not what.averaged and len(scores) == 1:
        lower, means = scores[0].lower_is_better, {own.arm: own.mean for own in scores[0].arms if own.mean is not None}
    return dict(sorted(((arm, mean if lower else -mean) for arm, mean in means.items()), key=lambda pair: pair[1]))


def _leader(analysis: Analysis, scores: Sequence[TaskScores], ranked: Mapping[str, float]) -> str | None:
    """Return the arm with the best mean by the measure; None if several are equally good."""
    if not measure(analysis.measure).averaged:
        return scores[0].better if len(scores) == 1 else None
    best = list(ranked.values())[:2]
    return None if len(best) > 1 and math.isclose(*best, rel_tol=1e-12) else next(iter(ranked), None)


def shown(analysis: Analysis, address: Callable[..., str] | None, whole: bool = True) -> dict[str, Any]:
    """Return the values for `analysis.html.j2`; without plots and tables unless the analysis is whole.

    Args:
        address: Returns the URL of the `plot` with a name; None: images are part of the page.
    """
    return {
        "analysis": analysis,
        "notes": analysis.remarks,
        "pictures": list(_pictures(analysis).values()) if whole else [],
        "source": (lambda plot: address(plot=plot.name)) if address else _inline,
        "tables": analysis_tables(analysis) if whole else [],
        "cell": cell,
    }


def pairs(analysis: Analysis) -> Iterator[Pair]:
    """Yield the runs by task and seed."""
    cells: dict[tuple[str, int], dict[str, Row]] = {}
    for row in analysis.results.rows:
        cells.setdefault((row.task, row.seed), {}).setdefault(row.arm, row)
    for (task, seed), by_arm in sorted(cells.items()):
        runs = tuple(by_arm.get(arm.name) for arm in analysis.arms)
        medals = {bool(run.medal) for run in runs if run is not None and run.counts}
        yield Pair(task, seed, runs, len(medals) > 1)


def readable(visit: Visit, rows: Iterable[Mapping[str, Any]]) -> Iterator[Path]:
    """Yield the directories of runs, except those that cannot be read yet."""
    for row in rows:
        with suppress(MlereduxError):
            yield visit.open(row["id"]).path


def record_of(visit: Visit, name: str) -> Record | None:
    """Return the record of an experiment in the runs directory or on the server; None if it does not exist."""
    if visit.folder is None:
        return next((record_from(stored) for stored in visit.experiments(name)), None)
    if Path(name).name != name:
        return None
    folder = visit.folder / FOLDER / name
    return open_record(folder) if (folder / RECORD_FILE).is_file() else None


def record_from(stored: StoredExperiment) -> Record:
    """Return the record of an experiment that is stored on a server."""
    return Record.model_validate(
        {
            "name": stored.id, "plan": stored.plan, "digest": digest_of(stored.plan), "file_digest": "", "data_dir": "",
            "created_at": stored.created_at, "changes": stored.changes, "stopped": stored.stopped,
        }
    )  # fmt: skip


def analysis_of(
    folders: Iterable[Path], record: Record | None, chosen: str | None = None, whole: bool = True
) -> Analysis:
    """Analyze runs; the analysis is cached until their files change.

    Args:
        chosen: The measure; None: that of the plan, or the usual one.
        whole: Passed to `analyse`.

    Raises:
        MlereduxError: There are no runs, or they are not comparable.
    """
    plan, changes = (record.plan.model_dump_json(), tuple(record.sentences)) if record else ("", ())
    with _lock:
        return _analysis(stamps_of(folders), plan, changes, chosen, whole)


@lru_cache(maxsize=_KEPT)
def _analysis(stamps: Stamps, plan: str, changes: tuple[str, ...], chosen: str | None, whole: bool) -> Analysis:
    from mleredux_experiments.sdk import analysed

    results = load_stamped(stamps, rollouts=whole)
    if not results.rows:
        raise MlereduxError("There are no runs to compare.", hint="Select runs of two agents in the list of runs.")
    return analysed(results, Plan.model_validate_json(plan) if plan else None, chosen, changes=changes, whole=whole)


def image(analysis: Analysis, name: str) -> Download:
    """Return a plot of an analysis as SVG.

    Raises:
        NotFound: The analysis has no such plot.
    """
    plot = _pictures(analysis).get(name)
    if plot is None:
        raise NotFound(f"The analysis of these runs has no plot {name!r}.", hint="Open the page again.")
    return Download(f"{name}.svg", io.BytesIO(plot.svg().encode()))


def _inline(plot: Picture) -> str:
    """Return a plot as URL; as an image, its styles do not affect the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(plot.svg().encode()).decode()}"


@lru_cache(maxsize=_KEPT)
def _pictures(analysis: Analysis) -> dict[str, Picture]:
    """Return the plots of an analysis by name; those of the latest analyses are cached."""
    return {plot.name: plot for plot in pictures(analysis)}
