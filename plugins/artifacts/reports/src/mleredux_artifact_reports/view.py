"""The content of a run's page, as plain values; everything of unknown length is truncated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models.formats import (
    TONES,
    counted,
    duration,
    facts,
    megabytes,
    moment,
    number,
    ordinal,
    plain,
    score,
    short_reference,
    size,
)
from mleredux.plugin.artifact import CAUSES, Artifact, Report, Run
from mleredux.plugin.command import current
from mleredux.plugin.files import disk_usage
from mleredux.plugin.task import Task, read_leaderboard

from mleredux_artifact_reports.charts import Progress, Scale, curve_of, scale_of
from mleredux_artifact_reports.documents import Document, documents_of
from mleredux_artifact_reports.files import ArtifactRow, LogView, artifacts_of, link_to, logs_of
from mleredux_artifact_reports.reconstruct import Ending, ending_of
from mleredux_artifact_reports.steps import RolloutView, rollout_of
from mleredux_artifact_reports.timeline import Mark, Tick, Timeline, axis_of, timeline_of

_SUBMISSIONS = 200
_DRAWN = frozenset(
    {"score", "medal", "above median", "percentile", "verdict", "metric", "thresholds", "valid", "message"}
)
"""Facts of a report that are shown elsewhere on the page."""


@dataclass(frozen=True)
class Fact:
    """A label and its value; `tone` is `good`, `warn`, `bad` or empty; `file`, in the run's folder, has details."""

    label: str
    value: str
    tone: str = ""
    note: str = ""
    file: str = ""


@dataclass(frozen=True)
class Meter:
    """A limit and its usage. `share` is in percent; if unknown, it is None and `used` is empty."""

    label: str
    used: str
    limit: str
    share: float | None
    hit: bool


@dataclass(frozen=True)
class SubmissionRow:
    """One version of the submission."""

    number: int
    time: str
    since: str
    size: str
    link: str
    graded: bool
    score: str
    own: str
    why: str


@dataclass(frozen=True)
class Submissions:
    """Versions of the submission over the agent's run time."""

    rows: list[SubmissionRow]
    left_out: int
    ticks: list[Tick]
    axis: list[Mark]
    curve: Progress | None

    @property
    def has_own(self) -> bool:
        """Whether the agent's own validation of any version is known."""
        return any(row.own for row in self.rows)


@dataclass(frozen=True)
class Page:
    """The content of a run's page."""

    run: Run
    title: str
    agent: str
    summary: str
    ending: Ending
    status: str
    tone: str
    counts: bool
    created: str
    report: Report | None
    score: str
    verdict: list[Fact]
    facts: list[Fact]
    scale: Scale | None
    cards: list[Fact]
    timeline: Timeline | None
    submissions: Submissions
    meters: list[Meter]
    ledger: list[Fact]
    documents: list[Document]
    rollout: RolloutView | None
    logs: list[LogView]
    artifacts: list[ArtifactRow]
    artifacts_left_out: int
    environment: list[Fact]
    packages: list[Fact]


def page_of(run: Run, produced: Sequence[Artifact] = (), *, with_rollout: bool = True) -> Page:
    """Return everything that the page shows about a run.

    Args:
        produced: Artifacts that plugins produced for the run.
        with_rollout: Whether to read the run's rollout, which may be large.
    """
    events, report, task = run.events(), run.report, _task(run)
    ending = ending_of(run)
    started = next((event.time for event in events if event.type == "agent"), None)
    until = None if run.status in TONES else datetime.now(UTC)
    artifacts, left_out = artifacts_of(run, produced)
    rollout = rollout_of(run) if with_rollout else None
    title = task.title if task else run.spec.task
    return Page(
        run=run,
        title=title,
        agent=short_reference(run.spec.agent),
        summary=_summary(run, title, ending, report),
        ending=ending,
        status=str(ending.state).replace("_", " "),
        tone=TONES.get(ending.state, "warn"),
        counts=ending.cause is None or CAUSES[ending.cause].counts,
        created=moment(run.spec.created_at),
        report=report,
        score=number(report.score) if report else "–",
        verdict=_verdict(report),
        facts=[Fact(name, value) for name, value in facts(report) if name not in _DRAWN] if report else [],
        scale=scale_of(report, _leaderboard(task)) if report else None,
        cards=_cards(run, until - started if until and started else None),
        timeline=timeline_of(events, run.resources(), until),
        submissions=_submissions(run, report, started, rollout.validated if rollout else {}),
        meters=_meters(run),
        ledger=_ledger(report),
        documents=documents_of(run, produced),
        rollout=rollout,
        logs=logs_of(run),
        artifacts=artifacts,
        artifacts_left_out=left_out,
        environment=_environment(run),
        packages=[Fact(name, version) for name, version in sorted(run.use.packages.items())],
    )


def _task(run: Run) -> Task | None:
    try:
        return current().task(run.spec.task)
    except MlereduxError:  # its plugin may be uninstalled when the page is created again
        return None


def _leaderboard(task: Task | None) -> list[float]:
    if task is None or task.leaderboard is None:
        return []
    try:
        return read_leaderboard(task.leaderboard)
    except MlereduxError:
        return []


def _summary(run: Run, title: str, ending: Ending, report: Report | None) -> str:
    subject = f"Agent {short_reference(run.spec.agent)} on {title}"
    if report and report.score is not None:
        medal = f", {report.medal} medal" if report.medal else ""
        return f"{subject}: {report.metric} {number(report.score)}{medal}"
    return f"{subject}: {str(ending.state).replace('_', ' ')}, no score"


def _verdict(report: Report | None) -> list[Fact]:
    """Return the marks next to the score."""
    if report is None or report.score is None:
        return []
    marks, verdict = [], report.verdict
    if verdict.status != "not checked":
        words = f"{verdict.status.capitalize()}: {verdict.why}"
        marks.append(Fact("verdict", words, "good" if verdict.trusted else "bad"))
    elif report.ledger and report.ledger.answers_exposed:
        marks.append(Fact("verdict", "Unverified: the answers were accessible to the agent", "bad"))
    if not verdict.trusted:
        return marks
    if report.gold_threshold is not None:
        marks.append(
            Fact("medal", f"{report.medal.capitalize()} medal" if report.medal else "No medal", report.medal or "")
        )
    if report.median_threshold is not None:
        words = "Above the median" if report.above_median else "Not above the median"
        marks.append(Fact("median", words, "good" if report.above_median else ""))
    if report.percentile is not None:
        entries = f" of {counted(report.teams, 'entry')}" if report.teams else ""
        words = f"{ordinal(report.percentile)} percentile{entries}"
        marks.append(Fact("percentile", words, "good" if report.percentile >= 50 else ""))
    return marks


def _cards(run: Run, so_far: timedelta | None) -> list[Fact]:
    outcome, versions = run.outcome, run.submissions()
    seconds = outcome.seconds if outcome else so_far.total_seconds() if so_far else None
    cards = [Fact("Agent run time", duration(seconds) if seconds is not None else "–")]
    if outcome and outcome.paused_seconds:
        cards.append(Fact("Working time", duration(outcome.working_seconds)))
    cards.append(Fact("Submissions", f"{len(versions):,}"))
    cards.append(Fact("Validations requested", f"{run.log.state.validations:,}"))
    memory = outcome.max_memory_mb if outcome else None
    cards.append(Fact("Peak memory", megabytes(memory) if memory is not None else "–"))
    cpu = outcome.cpu_seconds if outcome else None
    cards.append(Fact("CPU time", duration(cpu) if cpu is not None else "–"))
    return cards


def _submissions(
    run: Run, report: Report | None, started: datetime | None, validated: dict[int, tuple[str | None, float]]
) -> Submissions:
    versions = run.submissions()
    graded = versions[-1].number if versions and report and report.submission_exists else None
    rows, ticks = [], []
    total = max(
        [run.outcome.seconds if run.outcome else 0.0]
        + [(version.time - started).total_seconds() for version in versions[-1:] if started],
        default=0.0,
    )
    scores = {fact.number: fact for fact in run.scores}
    for version in versions[-_SUBMISSIONS:]:
        fact = scores.get(version.number)
        since = (version.time - started).total_seconds() if started else 0.0
        if total > 0:
            kind = "graded" if version.number == graded else "kept"
            title = f"Version {version.number} after {duration(since)}, {size(version.size)}"
            ticks.append(Tick(kind, round(min(100.0, 100 * max(0.0, since) / total), 3), title))
        rows.append(
            SubmissionRow(
                number=version.number,
                time=moment(version.time),
                since=duration(max(0.0, since)),
                size=size(version.size),
                link=link_to(version.path.relative_to(run.path).as_posix()),
                graded=version.number == graded,
                score=score(fact.score) if fact and fact.valid else "",
                own=_own(*validated[version.number], report) if version.number in validated else "",
                why=(fact.message or "") if fact else "",
            )
        )
    rows.reverse()
    own = {number: value for number, (metric, value) in validated.items() if report and metric == report.metric}
    curve = curve_of(run.scores, total, report, own) if report else None
    return Submissions(rows, len(versions) - len(rows), ticks, axis_of(total) if total > 0 else [], curve)


def _own(metric: str | None, value: float, report: Report | None) -> str:
    """Return the agent's own estimate, with its metric if that differs from the task's."""
    same = metric is None or (report is not None and metric == report.metric)
    return number(value) if same else f"{number(value)} ({(metric or '')[:32]})"


def _meters(run: Run) -> list[Meter]:
    limits, outcome = run.spec.limits, run.outcome
    hit = outcome.limit if outcome else None
    disk, _files = disk_usage(run.output_dir, run.logs_dir)

    def meter(name: str, label: str, used: float | None, limit: float, form: Any) -> Meter:
        share = None if used is None else min(100.0, round(100 * used / limit, 2))
        return Meter(label, "" if used is None else form(used), form(limit), share, hit == name)

    seconds = outcome.working_seconds if outcome else None
    memory = outcome.max_memory_mb if outcome else None
    return [
        meter("time", "Time", seconds, limits.time_limit, duration),
        meter("memory", "Peak memory", memory, limits.memory_mb, megabytes),
        meter("disk", "Disk, output files", disk / 2**20, limits.disk_mb, megabytes),
        meter("processes", "Processes", None, limits.processes, "{:,.0f}".format),
        meter("cpus", "CPUs", _mean_cpus(run), limits.cpus, partial(plain, digits=2)),
        *([meter("gpus", "GPUs", None, limits.gpus, "{:.0f}".format)] if limits.gpus else []),
    ]


def _mean_cpus(run: Run) -> float | None:
    outcome = run.outcome
    if outcome is None or outcome.cpu_seconds is None or outcome.seconds <= 0:
        return None
    return outcome.cpu_seconds / outcome.seconds


def _ledger(report: Report | None) -> list[Fact]:
    if report is None or report.ledger is None:
        return []
    ledger = report.ledger
    record = "llm/calls.jsonl" if ledger.llm_calls else ""
    calls = "no gateway" if ledger.llm_calls is None else f"{ledger.llm_calls:,}"
    exposed = "Yes – treat this score as unverified" if ledger.answers_exposed else "No"
    proof = "Yes – the result does not count" if ledger.answers_seen else "No proof"
    signals = [
        Fact("Answers accessible", exposed, "bad" if ledger.answers_exposed else "good"),
        Fact("Answers seen", proof, "bad" if ledger.answers_seen else "good"),
        Fact("Isolated from the host", "Yes" if ledger.isolated else "No", "good" if ledger.isolated else "warn"),
        Fact("Network", ledger.network, "good" if ledger.network == "none" else "warn"),
        Fact("Hosts reached", ", ".join(ledger.hosts[:50]) or "none recorded"),
        Fact(
            "Validations requested", f"{ledger.validations:,}", note="format only, never a score", file="events.jsonl"
        ),
        Fact("LLM calls", calls, file=record),
    ]
    if ledger.dev_scores:
        bits = f"at most {plain(ledger.dev_bits, 3)} bits about these rows"
        signals.append(Fact("Scores on held-out rows", f"{ledger.dev_scores:,}", note=bits, file="events.jsonl"))
    if (limit := ledger.disk) is not None:
        held = "by its own file system" if limit.enforced_by == "volume" else "by counting files during the run"
        signals.append(Fact("Disk limit", megabytes(limit.limit_mb), note=f"enforced {held}"))
    if (llm := ledger.llm) is not None:
        cost = "unknown" if llm.cost_usd is None else f"{llm.cost_usd:.4f} USD"
        answered = f"a replay: answered from {llm.replay}" if llm.replay is not None else "; ".join(llm.price_tables)
        refused = ", ".join(f"{name} ({count:,})" for name, count in llm.refused_fields.items())
        tokens = f"{llm.prompt_tokens:,} prompt, {llm.completion_tokens:,} completion"
        signals += [
            Fact("LLM tokens", tokens, note=f"{llm.cached_tokens:,} prompt tokens were cached"),
            Fact("LLM cost", cost, note=answered),
            Fact("LLM budget exhausted", llm.exhausted or "none", "warn" if llm.exhausted else "good"),
            Fact("LLM requests refused", refused or "none", "warn" if refused else "good", file=record),
        ]
    noted = dict.fromkeys(ledger.notes, "") | dict.fromkeys(
        (item.why for item in report.verdict.evidence), "report.json"
    )
    return signals + [Fact("Note", note, file=file) for note, file in noted.items()]


def _environment(run: Run) -> list[Fact]:
    use = run.use
    values = {
        "Run": run.id,
        "Task": f"{run.spec.task}, version {use.task_version or 'unknown'}",
        "Prepared data": use.task_data,
        "Agent": f"{run.spec.agent}, version {use.agent_version or 'unknown'}",
        "Agent's environment": use.image,
        "Sandbox": run.spec.sandbox,
        "Seed": str(run.spec.seed),
        "Options": ", ".join(f"{name} = {value!r}"[:200] for name, value in run.spec.options.items()) or None,
        "Python": use.python,
        "Git commit": use.git_commit,
        "Machine": use.host,
    }
    return [Fact(label, value) for label, value in values.items() if value]
