"""Tables of results for the terminal, and in Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from mleredux.models.formats import plain

from mleredux_experiments.failures import CATEGORIES
from mleredux_experiments.inference.difference import Comparison, level
from mleredux_experiments.inference.errors import Interval
from mleredux_experiments.results.measures import MEASURES, RESOURCES, Estimate, measure, time_unit
from mleredux_experiments.results.scores import TaskScores, number, task_scores

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis
    from mleredux_experiments.analysis.leaderboard import Standing


_LONG = 120
"""Maximum number of characters of a quoted line."""
_ZERO = 1e-9
"""Smaller values are rounding errors."""
_LEAST = 8
"""Minimum width of columns, in characters."""
_BOUNDS = ("if missing fail", "if they succeed")
_ONCE = ("one seed", "some tasks once")
"""Shown instead of an error over seeds, if all or some tasks have a single run."""
_FEW = 3
"""Groups with fewer tasks are not informative, and are left out of tables."""


@dataclass(frozen=True)
class Table:
    """A table with a title; cells are text, or numbers that are shown with few digits.

    Attributes:
        optional: Columns that are omitted in a narrow terminal, in this order.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    optional: tuple[str, ...] = ()


def cell(value: Any) -> str:
    """Return a cell as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = f"{value:.1f}" if abs(value) >= 10 else plain(value, 3)
        return "0" if abs(float(text)) < _ZERO else text
    return "".join(char if char.isprintable() else "?" for char in str(value))


def echo(table: Table, width: int | None = None) -> None:
    """Print a table that fits the terminal.

    Optional columns are omitted first, and their names printed; then the first column and headings are shortened, the
    longest most.
    """
    room = width or shutil.get_terminal_size((120, 24)).columns
    shown = list(range(len(table.columns)))
    lines = [[cell(value) for value in row] for row in table.rows]

    def widths() -> list[int]:
        return [max(len(line[i]) for line in [table.columns, *lines]) for i in shown]

    for name in table.optional:
        if sum(widths()) + 2 * (len(shown) - 1) <= room:
            break
        shown.remove(table.columns.index(name))
    columns = widths()
    least = [_LEAST, *(max(_LEAST, *(len(line[i]) for line in lines)) for i in shown[1:])]
    while sum(columns) + 2 * (len(shown) - 1) > room and any(map(int.__gt__, columns, least)):
        columns[max(range(len(shown)), key=lambda i: (columns[i] > least[i], columns[i]))] -= 1
    click.echo(click.style(table.title, bold=True))
    heads = [_cut_middle(name, columns[shown.index(i)]) if i in shown else name for i, name in enumerate(table.columns)]
    for line in [heads, *lines]:
        parts = [cut(line[i], size) for i, size in zip(shown, columns, strict=True)]
        aligned = [
            part.rjust(size) if is_numeric(table, i) else part.ljust(size)
            for i, part, size in zip(shown, parts, columns, strict=True)
        ]
        click.echo("  ".join(aligned).rstrip())
    if omitted := [name.strip() for number, name in enumerate(table.columns) if number not in shown]:
        click.echo(f"A wider terminal also shows {', '.join(omitted)}.", err=True)


def is_numeric(table: Table, column: int) -> bool:
    """Return whether a column of a table has numbers."""
    return any(isinstance(row[column], int | float) and not isinstance(row[column], bool) for row in table.rows)


def cut(text: str, size: int) -> str:
    """Return text, truncated if it is longer than a given size."""
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _cut_middle(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size // 2]}…{text[len(text) - (size - size // 2 - 1) :]}"


def markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    body = "\n".join("| " + " | ".join(cell(value).replace("|", "\\|") for value in line) + " |" for line in lines)
    return f"### {table.title}\n\n{body}\n"


_LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "−": "$-$", "~": r"\textasciitilde{}"}
_LATEX |= {char: f"\\{char}" for char in "&%$#_{}"} | {"^": r"\textasciicircum{}"}


def latex(table: Table) -> str:
    """Return a table as a LaTeX `table` with `booktabs` rules."""

    def line(values: Sequence[Any]) -> str:
        return " & ".join("".join(_LATEX.get(char, char) for char in cell(value)) for value in values) + r" \\"

    align = "".join("r" if is_numeric(table, i) else "l" for i in range(len(table.columns)))
    title = rf"\caption{{{line([table.title])[:-3]}}}"
    head = [r"\begin{table}", r"\centering", title, rf"\begin{{tabular}}{{{align}}}"]
    body = [r"\toprule", line(table.columns), r"\midrule", *map(line, table.rows), r"\bottomrule"]
    return "\n".join([*head, *body, r"\end{tabular}", r"\end{table}", ""])


def csv_text(table: Table) -> str:
    """Return a table as CSV with all digits."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()


def shown(estimate: Estimate | None, deterministic: bool = False, factor: float = 1.0) -> str:
    """Return an estimate, times a factor, as text for tables: the mean, and its error over seeds."""
    if estimate is None:
        return "–"
    estimate = estimate.scaled(factor)
    error = _ONCE[estimate.runs > estimate.tasks] if estimate.sem is None else f"± {estimate.sem:.2f}"
    return f"{estimate.mean:.2f} {'deterministic' if deterministic else error}{'†' * bool(estimate.missing)}"


def leaderboard_tables(standings: Sequence[Standing], chosen: str = "any_medal") -> list[Table]:
    """Return the published table by split, and the intervals for tasks like these."""
    splits = [name for name in ("all", "low", "medium", "high") if any(name in row.splits for row in standings)]
    title, factor = _unit_of(chosen, (row.splits.get(split, {}).get(chosen) for row in standings for split in splits))
    rows, intervals = [], []
    for row in standings:
        means = {split: row.splits.get(split, {}).get(chosen) for split in splits}
        fixed = row.deterministic and chosen not in RESOURCES
        cells = [shown(means[split], fixed, factor) for split in splits]
        if splits[:1] == ["all"] and not row.complete and row.covers:
            cells[0] = f"only {'+'.join(row.covers)}"
        rows.append((row.name, *cells, row.runs))
        for split in splits:
            if (own := means[split]) is not None and (own.low is not None or own.bounds):
                estimate, bounds = own.scaled(factor), own.bounds or (None, None)
                intervals.append((row.name, split, estimate.mean, estimate.low, estimate.high, estimate.tasks, *bounds))
    optional = ("runs", *(name for name in ("high", "medium", "low") if name in splits))
    heads = ("name", "split", "mean", "low", "high", "tasks", *_BOUNDS)
    title = f"{title.capitalize()} (± these tasks again, over seeds)"
    tables = [
        Table(title, ("name", *splits, "runs"), tuple(rows), optional),
        Table("Tasks like these: 95 % interval", heads, tuple(intervals), ("tasks", "mean")),
    ]
    return [_without_bounds(table) for table in tables if table.rows]


def _without_bounds(table: Table) -> Table:
    """Return the table without the columns for missing runs if none are missing."""
    if table.columns[-2:] != _BOUNDS or any(row[-1] is not None for row in table.rows):
        return table
    return replace(table, columns=table.columns[:-2], rows=tuple(row[:-2] for row in table.rows))


def score_table(tasks: Sequence[TaskScores]) -> Table:
    """Return a table of each task with the scores of the arms; the better arm is marked."""
    names = [arm.arm for arm in tasks[0].arms] if tasks else []
    rows = []
    for row in tasks:
        scores = [f"{'*' if arm.arm == row.better else ' '} {arm.text}" for arm in row.arms]
        ranks = " | ".join("–" if arm.percentile is None else f"{arm.percentile:.1f}" for arm in row.arms)
        medals = " | ".join(str(arm.medals) for arm in row.arms)
        rows.append((row.task, *scores, ranks, medals))
    title = "Scores: mean ± standard deviation (number of runs); * marks the better arm"
    columns = ("task", *(f"  {name}" for name in names), "percentile", "medals")
    return Table(title, columns, tuple(rows), ("medals", "percentile"))


def comparison_tables(pair: Comparison) -> list[Table]:
    """Return tables of the groups of tasks that differ, and of each task."""
    unit, factor = pair.shown_unit
    records = [(place, f"{place.wins}/{place.ties}/{place.losses}") for place in pair.places if place.tasks >= _FEW]
    places = [
        (place.name, place.kind, place.tasks, place.difference * factor, *_limits(place.interval, factor), record)
        for place, record in records
    ]
    raw = pair.measure.partition("@")[0] == "score"
    tasks = [
        (
            task.task,
            *(number(mean) if raw else mean * factor for mean in (task.a, task.b)),
            *(task.difference * factor, task.shrunken * factor, task.q),
            f"{task.runs[0]}+{task.runs[1]}",
        )
        for task in sorted(pair.tasks, key=lambda task: -task.difference)
        if task.difference
    ]
    same = len(pair.tasks) - len(tasks)
    title = f"Tasks that differ (the other {f'{same} do' if same > 1 else 'does'} not)" if same else "Tasks"
    title += f", in {unit}" if unit != pair.unit else ""
    columns = ("task", pair.a, pair.b, "difference", "shrunken", "q", "runs")
    tables = [Table(title, columns, tuple(tasks), ("runs", "q", "shrunken"))] if tasks else []
    if pair.failures:
        failures = [
            (CATEGORIES[item.category].words, item.a, item.b, item.difference, *_limits(item.interval)[:2], item.q)
            for item in pair.failures
        ]
        columns = ("failure", f"{pair.a}, %", f"{pair.b}, %", "difference", "low", "high", "q")
        tables.append(Table("Failures, in % of runs (a run may have several)", columns, tuple(failures), ("q",)))
    if places:
        heads = ("where", "by", "tasks", "difference", "low", "high", "level", "wins/ties/losses")
        tables.insert(0, Table("Where", heads, tuple(places), ("wins/ties/losses", "by", "tasks")))
    return tables


def _limits(interval: Interval | None, factor: float = 1.0) -> tuple[float | None, float | None, str]:
    if interval is None:
        return None, None, "–"
    return interval.low * factor, interval.high * factor, level(1 - interval.level)


def _unit_of(name: str, estimates: Iterable[Estimate | None]) -> tuple[str, float]:
    """Return the title of a measure, and a factor for its values; times get a unit that suits the longest."""
    what = measure(name)
    if what.unit != "h":
        return what.title, 1.0
    unit, factor = time_unit(max((estimate.mean for estimate in estimates if estimate), default=0.0))
    return f"{what.title}, {unit}", factor


def _measure_row(analysis: Analysis, name: str) -> tuple[str, ...]:
    """Return the row of a measure for all arms."""
    estimates = [arm.estimates.get(name) for arm in analysis.arms]
    title, factor = _unit_of(name, estimates)
    title += f", {unit}" if (unit := MEASURES[name].unit) not in ("", name, "h") else ""
    fixed = [arm.deterministic and name not in RESOURCES for arm in analysis.arms]
    return title, *(shown(mean, same, factor) for mean, same in zip(estimates, fixed, strict=True))


def analysis_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of an analysis: scores by task, measures by arm, groups, ranking, and each comparison."""
    columns = ("measure", *(arm.name for arm in analysis.arms))
    paused = any(row.paused_hours for row in analysis.results.rows)
    names = [name for name in MEASURES if paused or name != "working_hours"]
    rows = [_measure_row(analysis, name) for name in names if any(name in arm.estimates for arm in analysis.arms)]
    missing = any(mean.missing for arm in analysis.arms for mean in arm.estimates.values())
    tables = [
        score_table(task_scores(analysis.results.arms)),
        Table(f"Measures (± these tasks again, over seeds{'; † runs are missing' * missing})", columns, tuple(rows)),
    ]
    title, factor = _unit_of(analysis.measure, [arm.estimates.get(analysis.measure) for arm in analysis.arms])
    intervals = []
    for arm in analysis.arms:
        if own := arm.estimates.get(analysis.measure):
            mean = own.scaled(factor)
            sizes = (mean.se_tasks, mean.se_sources, mean.tasks, mean.runs, *(mean.bounds or (None, None)))
            intervals.append((arm.name, mean.mean, mean.low, mean.high, *sizes))
    heads = ("arm", "mean", "low", "high", "SE by task", "SE by source", "tasks", "runs", *_BOUNDS)
    optional = ("SE by source", "SE by task", "runs", "tasks")
    intervals.sort(key=lambda row: row[1] if measure(analysis.measure).lower else -row[1])
    caption = f"{title.capitalize()}, tasks like these: {level(analysis.alpha)} interval"
    tables.append(_without_bounds(Table(caption, heads, tuple(intervals), optional)))
    for kind, head in (("splits", "split"), ("categories", "category")):
        groups = list(dict.fromkeys(name for arm in analysis.arms for name in getattr(arm, kind)))
        if len(groups) > 1:
            lines = [
                (name, *(shown(getattr(arm, kind).get(name), arm.deterministic, factor) for arm in analysis.arms))
                for name in groups
            ]
            tables.append(Table(f"{title.capitalize()} by {head}", (head, *columns[1:]), tuple(lines)))
    if analysis.ranking:
        spans = [(rank, f"{rank.low}–{rank.high}") for rank in analysis.ranking]
        ranks = tuple(
            (rank.rank, rank.arm, span, rank.best and 100 * rank.best, rank.strength, rank.iqm, rank.ability)
            for rank, span in spans
        )
        columns = ("rank", "arm", "95 %", "best, %", "Bradley–Terry", "IQM", "ability")
        tables.append(Table("Ranking on common tasks", columns, ranks, ("ability", "IQM", "Bradley–Terry")))
    lines = [
        (arm.name, CATEGORIES[item.category].words, item.primary, item.runs, item.line[:_LONG], item.where)
        for arm in analysis.arms
        for item in arm.failures
    ]
    if lines:
        columns = ("arm", "failure", "primary of", "runs", "a line that shows it, from one run", "where")
        tables.append(Table("Why runs fall short", columns, tuple(lines), (columns[-1], columns[-2])))
    for two in analysis.comparisons:
        tables += [replace(table, title=f"{two.b} against {two.a}: {table.title}") for table in comparison_tables(two)]
    return tables
