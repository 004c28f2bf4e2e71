"""Versions of the submission: their scores, the gain of each, and the diffs of their code."""

from __future__ import annotations

from dataclasses import dataclass

from mleredux.models.formats import duration, plain, score, size
from mleredux.plugin.artifact import Run, VersionScore

from mleredux_view.diffs import diff_folders
from mleredux_view.pages.run import about
from mleredux_view.visit import Shown, Visit, missing, page

_SHOWN = 500


@dataclass(frozen=True)
class Row:
    """A version in the list; `change` is its difference from the previous version, with a direction as in `gain`."""

    number: int
    after: str
    size: str
    path: str
    score: str
    why: str
    medal: str | None
    change: str
    gain: str
    has_code: bool


@page("/runs/{run_id}/versions")
def versions(visit: Visit) -> Shown:
    """List all versions, the newest first."""
    run = visit.run
    rows = _rows(run)
    values = {**about(run, "versions"), "rows": rows[::-1][:_SHOWN], "left_out": max(0, len(rows) - _SHOWN)}
    return Shown("versions.html.j2", values)


@page("/runs/{run_id}/versions/{number}")
def version(visit: Visit) -> Shown:
    """Show one version with the diff of its code from the previous version, or from another one."""
    run = visit.run
    kept = {str(submission.number): submission for submission in run.submissions()}
    chosen = kept.get(visit.parts["number"])
    if chosen is None:
        raise missing(f"version {visit.parts['number'][:20]!r} of run {run.id}")
    before = kept.get(visit.text("from") or str(chosen.number - 1))
    rows = {row.number: row for row in _rows(run)}
    return Shown(
        "version.html.j2",
        {**about(run, "versions"), "row": rows[chosen.number], "before": before and rows[before.number],
         "files": diff_folders(before.code if before else None, chosen.code),
         "next": rows.get(chosen.number + 1), "previous": rows.get(chosen.number - 1)},
    )  # fmt: skip


def _rows(run: Run) -> list[Row]:
    scores = {fact.number: fact for fact in run.scores}
    report, state, best = run.report, run.log.state, None
    lower = bool(report and report.is_lower_better)
    rows = []
    for kept in run.submissions():
        fact = scores.get(kept.number)
        change, gain = _change(best, fact, lower)
        rows.append(
            Row(
                number=kept.number,
                after=duration(max(0.0, kept.time.timestamp() - state.agent_started)) if state.agent_started else "–",
                size=size(kept.size),
                path=kept.path.relative_to(run.path).as_posix(),
                score=score(fact.score) if fact and fact.score is not None else "",
                why=(fact.message or "no score") if fact else "not graded",
                medal=fact.medal if fact else None,
                change=change,
                gain=gain,
                has_code=kept.code.is_dir(),
            )
        )
        best = fact.score if fact and fact.score is not None else best
    return rows


def _change(before: float | None, fact: VersionScore | None, lower: bool) -> tuple[str, str]:
    if before is None or fact is None or fact.score is None:
        return "", ""
    change = fact.score - before
    if not change:
        return "±0", ""
    return plain(change, 5, signed=True).replace("-", "−"), "better" if (change < 0) == lower else "worse"
