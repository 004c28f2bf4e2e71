"""The table of runs from which everything in this package is computed: one row per run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mleredux.errors import NotFound, WrongUsage
from mleredux.models.formats import counted, short_reference
from mleredux.plugin.experiment import Plan, is_sample

from mleredux_experiments.failures.categories import Finding, primary

if TYPE_CHECKING:
    import pandas as pd

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
MEDALS = ("gold", "silver", "bronze")
SPLITS = ("low", "medium", "high")
UNTRUSTED = frozenset({"tainted", "not reproducible"})
"""Verdicts with which a result earns no medal."""
NOT_COUNTED = frozenset({"environment_broke", "task_broken", "cancelled"})
"""Causes for which the agent is not responsible; such runs are left out and counted separately."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a run's submission, graded after the run."""

    seconds: float
    """Time since the agent's start."""
    score: float | None
    valid: bool
    cost_usd: float | None = None
    """The cost of the run up to that time."""
    validation: float | None = None
    """The agent's own measurement of this version."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run. Thresholds, directions and percentiles are taken from its report."""

    run: str
    arm: str
    agent: str
    task: str
    seed: int
    status: str = "done"
    cause: str | None = None
    verdict: str = "not checked"
    score: float | None = None
    lower_is_better: bool = False
    gold: float | None = None
    silver: float | None = None
    bronze: float | None = None
    median: float | None = None
    submitted: bool = False
    valid: bool = False
    medal: str | None = None
    above_median: bool = False
    percentile: float | None = None
    metric: str | None = None
    cost_usd: float | None = None
    tokens: int | None = None
    hours: float | None = None
    paused_hours: float = 0.0
    """How many of these hours the run's clock was paused, because no provider of language models was available."""
    time_limit: float | None = None
    """The time limit in seconds."""
    validation: float | None = None
    """The agent's own measurement of the solution that it submitted."""
    technique_use: float | None = None
    """The reward from `mleredux runs techniques`, from 0 to 1, if it was computed."""
    versions: tuple[Version, ...] = ()
    task_version: str | None = None
    setup: Mapping[str, Any] = field(default_factory=dict)
    """Settings that must be equal within an arm: the agent's version, options, context, network, limits."""
    experiment: str | None = None
    findings: tuple[Finding, ...] | None = None
    """Why it failed or fell short, the primary failure first; None: not analyzed."""

    @property
    def failure(self) -> str | None:
        """Return the category of its primary failure."""
        return primary(self.findings or ())

    @property
    def working_hours(self) -> float | None:
        """Return its time without pauses."""
        return None if self.hours is None else self.hours - self.paused_hours

    @property
    def sign(self) -> int:
        """Return the factor by which higher scores are better."""
        return -1 if self.lower_is_better else 1

    @property
    def counts(self) -> bool:
        """Return whether the run counts: it has ended, and neither the environment nor the task broke."""
        return self.status in ("done", "failed", "timed_out") and self.cause not in NOT_COUNTED

    @property
    def base(self) -> str:
        """Return the task's competition, without technique and variant."""
        return re.sub(r"\+.*", "", self.task.rpartition("@")[2])

    def medal_of(self, score: float | None) -> str | None:
        """Return the medal that a score earns according to the thresholds in this run's report."""
        if score is None or self.verdict in UNTRUSTED:
            return None
        sign, thresholds = self.sign, (self.gold, self.silver, self.bronze)
        for name, least in zip(MEDALS, thresholds, strict=True):
            if least is not None and sign * score >= sign * least:
                return name
        return None

    def at(self, seconds: float) -> Row:
        """Return the run as if it had ended at this time: its last valid version by then counts, not its best."""
        if self.hours is not None and self.hours * 3600 <= seconds:
            return self
        last = next((version for version in reversed(self.versions) if version.seconds <= seconds), None)
        score = last.score if last and last.valid else None
        above = score is not None and self.median is not None and self.sign * score > self.sign * self.median
        return replace(
            self,
            score=score,
            submitted=last is not None,
            valid=score is not None,
            medal=self.medal_of(score),
            above_median=above and self.verdict not in UNTRUSTED,
            percentile=None,
            hours=seconds / 3600,
            status="done",
            cause=None,
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a task that do not depend on its runs."""

    split: str | None = None
    """`low`, `medium` or `high`."""
    category: str | None = None
    metric: str | None = None


def source(task: str) -> str:
    """Return the data source of a task: its competition without technique, variant, year and edition.

    Tasks from the same source are not independent: `cv@digits` and `digits+fixed`, `herbarium-2020-fgvc7` and
    `herbarium-2021-fgvc8`.
    """
    base = re.sub(r"\+.*", "", task.rpartition("@")[2])
    return re.sub(r"-(19|20)\d\d(?=-|$)|-fgvc\d+$", "", base) or base


def pairing(arms: Iterable[Sequence[Row]]) -> Callable[[Row], str]:
    """Return a function that gives the key by which tasks of arms are matched: the task or, if the arms share none, its
    competition."""
    common = set.intersection(*({row.task for row in rows} for rows in arms))
    return (lambda row: row.task) if common else (lambda row: row.base)


class Left(NamedTuple):
    """A run that is left out, with the reason and its row; the row is None if it cannot be read."""

    run: str
    why: str
    row: Row | None = None


def _plain_name(arm: str) -> str:
    """Return the name of an arm without its version and settings."""
    return short_reference(arm.partition("[")[0]).partition("@")[0]


@dataclass(frozen=True)
class Results:
    """Runs in any order, with facts about their tasks.

    Attributes:
        rows: One row per run.
        facts: Facts by task.
        universe: Tasks by split on which an arm is measured even if it has no runs of them (they count as failures);
            empty: the tasks on which some arm has runs.
        notes: Sentences about runs that were left out when reading.
        left: Runs that were left out when reading.
        planned: Names of the limits that the plan sets, by arm; empty if there is no plan, or it is not known.
        by_report: Whether each seed is a grading report over all tasks.
    """

    rows: tuple[Row, ...]
    facts: Mapping[str, Facts] = field(default_factory=dict)
    universe: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_report: bool = False
    left: tuple[Left, ...] = ()
    planned: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def remarks(self, arms: Iterable[str] | None = None) -> list[str]:
        """Return a sentence for each reason why runs were left out, only for runs of these arms if any are named."""
        wanted = None if arms is None else {_plain_name(arm) for arm in arms}
        left = (run for run in self.left if wanted is None or run.row is None or _plain_name(run.row.arm) in wanted)
        reasons = grouped((run.why, run.run) for run in left)
        named = {why: f"{runs[0]}{f' and {len(runs) - 1} more' if runs[1:] else ''}" for why, runs in reasons.items()}
        return [*self.notes, *(f"Left out: {runs}, {why}." for why, runs in named.items())]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def arms(self) -> dict[str, tuple[Row, ...]]:
        """Return the rows by arm, in order of first appearance."""
        return {arm: tuple(rows) for arm, rows in grouped((row.arm, row) for row in self.rows).items()}

    @property
    def tasks(self) -> list[str]:
        """Return all tasks, sorted."""
        return sorted({row.task for row in self.rows})

    def fact(self, task: str) -> Facts:
        """Return the facts of a task; for a variant or a technique task, those of its competition."""
        return self.facts.get(task) or self.facts.get(re.sub(r"\+.*", "", task.rpartition("@")[2])) or Facts()

    def keep(self, rows: Iterable[Row]) -> Results:
        """Return the same results with other rows."""
        return replace(self, rows=tuple(rows))

    def without_samples(self) -> Results:
        """Return the results without runs on debug samples (`wine+debug-200`), unless there are only such runs: they
        are never mixed."""
        whole = tuple(row for row in self.rows if not is_sample(row.task)) or self.rows
        return self._only(whole, "on debug samples, which are not comparable")

    def ranked(self) -> Results:
        """Return the results without runs whose test score was disclosed: the task is no longer a test for an agent
        that learned from it."""
        rows = tuple(row for row in self.rows if row.verdict != "score given")
        return self._only(rows, "whose test score was revealed as a reward")

    def _only(self, rows: tuple[Row, ...], reason: str) -> Results:
        """Return the results with these rows; a note counts the others."""
        if not (removed := len(self.rows) - len(rows)):
            return self
        return replace(self, rows=rows, notes=(*self.notes, f"Left out: {counted(removed, 'run')} {reason}."))

    def under(self, plan: Plan | None) -> Results:
        """Return the results with the names of the limits that their plan sets."""
        arms = plan.all_arms() if plan is not None else {}
        planned = {name: tuple(arm.limits.model_dump(exclude_none=True)) for name, arm in arms.items()}
        return replace(self, planned=planned)

    def where(self, conditions: Iterable[str]) -> Results:
        """Return the rows that meet all conditions, each `FIELD=VALUE` with a field of the row, its setup or its task.

        Raises:
            WrongUsage: A condition has no `=`, or no row has the field.
        """
        wanted = []
        for condition in conditions:
            key, equals, value = condition.partition("=")
            if not equals:
                raise WrongUsage(f"{condition!r} is not a condition.", hint="Write FIELD=VALUE, such as seed=0.")
            wanted.append((key.strip(), value.strip()))
            if self.rows and all(self._field(row, key.strip()) is _ABSENT for row in self.rows):
                known = ", ".join((*_COLUMNS, "failure", "split", "category"))
                hint = f"The fields are {known}, and options and limits by name."
                raise WrongUsage(f"No run has the field {key!r}.", hint=hint)

        def meets(row: Row) -> bool:
            return all(text_of(self._field(row, key)) == value for key, value in wanted)

        left = tuple(run for run in self.left if run.row is None or meets(run.row))
        return replace(self.keep(filter(meets, self.rows)), left=left)

    def _field(self, row: Row, key: str) -> Any:
        if key in ("split", "category"):
            return getattr(self.fact(row.task), key)
        if key == "failure" or key in Row.__dataclass_fields__:
            return getattr(row, key)
        setup = dict(flat(row.setup))
        return setup.get(key, next((value for name, value in setup.items() if name.endswith(f".{key}")), _ABSENT))

    def arm(self, selector: str) -> tuple[Row, ...]:
        """Return the rows of an arm, selected by `NAME` or `NAME[FIELD=VALUE,…]`.

        The name may be an agent's full reference, or its name or path without a version, which means the newest
        version.

        Raises:
            NotFound: The arm does not exist, or has no such runs.
        """
        name, bracket, rest = selector.partition("[")
        if selector in self.arms:
            return self.arms[selector]
        if name not in self.arms and (same := self._versions(name)):
            name = same[-1]
        if name not in self.arms:
            known = ", ".join(list(self.arms)[:12]) or "none, because there are no runs"
            raise NotFound(f"There is no arm or agent {name!r} among these runs.", hint=f"Choose from: {known}.")
        conditions = [part for part in rest.rstrip("]").split(",") if part] if bracket else []
        rows = self.keep(self.arms[name]).where(conditions).rows
        if not rows:
            raise NotFound(f"No run of {name!r} has {', '.join(conditions)}.", hint="See `mleredux runs`.")
        return tuple(replace(row, arm=selector) for row in rows)

    def _versions(self, name: str) -> list[str]:
        """Return the arms that a name without a version may refer to, the newest last."""
        plain = name.rstrip("/").rpartition("/")[2]
        same = [arm for arm, rows in self.arms.items() if name == rows[0].agent or plain == arm.partition("@")[0]]
        return sorted(same, key=lambda arm: max(row.run for row in self.arms[arm]))

    def note_on(self, selector: str) -> str | None:
        """Return a sentence that states which version is used, if a name is ambiguous."""
        name = selector.partition("[")[0]
        same = self._versions(name)
        if {selector, name} & self.arms.keys() or len(same) < 2:
            return None
        return f"{name} names {len(same)} versions; the newest, {same[-1]}, is used."

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Return the number of runs that do not count, by reason."""
        reasons = (row.cause if row.cause in NOT_COUNTED else row.status for row in self.rows if not row.counts)
        return dict(Counter(str(reason).replace("_", " ") for reason in reasons))

    @property
    def frame(self) -> pd.DataFrame:
        """Return one row per run, without versions; settings are columns such as `agent_version` and
        `limits.time_limit`."""
        import pandas as pd

        return pd.DataFrame(list(self.records()))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Results:
        """Return the table from its document, as sent by a server."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(document)

    def document(self) -> dict[str, Any]:
        """Return the whole table for JSON, with versions, failures and only the facts of the tasks in it."""
        from pydantic_core import to_jsonable_python

        own = replace(self, facts={task: self.fact(task) for task in self.tasks})
        return dict(to_jsonable_python(own, inf_nan_mode="null"))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one flat dictionary per run."""
        for row in self.rows:
            fact = self.fact(row.task)
            failures = dict.fromkeys(finding.category for finding in row.findings or () if not finding.overcome)
            yield {
                **{name: getattr(row, name) for name in _COLUMNS},
                "failure": row.failure,
                "failures": ",".join(failures) or None,
                "counts": row.counts,
                "split": fact.split,
                "category": fact.category,
                "versions": len(row.versions),
                **{
                    key: value if isinstance(value, str | int | float | None) else str(value)
                    for key, value in flat(row.setup)
                },
            }


_ABSENT: Any = object()
_COLUMNS = tuple(item.name for item in fields(Row) if item.name not in ("versions", "setup", "findings"))
"""Fields of a row that become columns of a table."""


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key, in order of first appearance."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values of nested settings, such as `limits.time_limit`."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        yield from flat(value, f"{name}.") if isinstance(value, Mapping) else ((name, value),)


def text_of(value: Any) -> str:
    """Return a value as written in conditions."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "none" if value in (None, _ABSENT) else str(value).lower() if isinstance(value, bool) else str(value)
