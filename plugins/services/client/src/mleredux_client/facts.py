"""What is known of a run without asking again; the same in both worlds."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from mleredux_client.display import experiment_html, fields_html, run_html
from mleredux_client.models import BuildRecord, ExperimentRecord, RunRecord, State, SubmissionRecord

_Record = TypeVar("_Record", RunRecord, ExperimentRecord, SubmissionRecord, BuildRecord)
_Work = TypeVar("_Work", SubmissionRecord, BuildRecord)


class _Facts(Generic[_Record]):
    def __init__(self, record: _Record) -> None:
        self.record: _Record = record

    @property
    def id(self) -> str:
        """What the service calls it."""
        return self.record.id


class _WorkFacts(_Facts[_Work]):
    _final: ClassVar[frozenset[str]]

    @property
    def status(self) -> str:
        """`queued`, what is done now, or how it ended."""
        return self.record.status

    @property
    def message(self) -> str | None:
        """One sentence on why it failed."""
        return self.record.message

    @property
    def finished(self) -> bool:
        """Whether nothing follows."""
        return self.record.status in self._final


class RunFacts(_Facts[RunRecord]):
    """A run as it was when the service was last asked (`refresh`, `wait`, and the end of `events`)."""

    @property
    def task(self) -> str:
        """Id of the task."""
        return self.record.task

    @property
    def agent(self) -> str:
        """Id of the agent, or its pinned reference."""
        return self.record.agent

    @property
    def sandbox(self) -> str | None:
        """Where the agent runs."""
        return self.record.sandbox

    @property
    def seed(self) -> int:
        """What the agent was given as seed."""
        return self.record.seed

    @property
    def labels(self) -> dict[str, str]:
        """As given."""
        return dict(self.record.labels)

    @property
    def state(self) -> State:
        """`queued`, `running`, `done`, …; `run.state.final` says whether anything follows."""
        return State(self.record.status)

    @property
    def status(self) -> State:
        """The same as `state`."""
        return self.state

    @property
    def cause(self) -> str | None:
        """Why it failed: `agent_crashed`, `out_of_memory`, …"""
        return self.record.cause

    @property
    def message(self) -> str | None:
        """One sentence on why it failed."""
        return self.record.message

    @property
    def waiting_for(self) -> str | None:
        """Why it is still queued."""
        return self.record.waiting_for

    @property
    def score(self) -> float | None:
        """Of the submission that counts."""
        return self.record.score

    @property
    def medal(self) -> str | None:
        """`gold`, `silver`, `bronze` or None."""
        return self.record.medal

    @property
    def valid(self) -> bool | None:
        """Whether the submission could be scored."""
        return self.record.valid

    @property
    def created_at(self) -> datetime | None:
        """When it was asked for."""
        return self.record.created_at

    @property
    def started_at(self) -> datetime | None:
        """When it left the queue."""
        return self.record.started_at

    @property
    def ended_at(self) -> datetime | None:
        """When it became final."""
        return self.record.ended_at

    def describe(self) -> str:
        """What is going on, in a few words."""
        if self.state == "queued" and self.waiting_for:
            return f"queued: {self.waiting_for}"
        score = f", score {self.score:g}" if self.score is not None else ""
        medal = f", {self.medal} medal" if self.medal else ""
        why = f": {self.message}" if self.message else ""
        return f"{self.state}{score}{medal}{why}"

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.task} {self.agent} {self.describe()}>"

    def _repr_html_(self) -> str:
        return run_html(self.record)


class ExperimentFacts(_Facts[ExperimentRecord]):
    """An experiment as it was when the service was last asked."""

    @property
    def name(self) -> str | None:
        """As given."""
        return self.record.name

    @property
    def counts(self) -> dict[str, int]:
        """Runs by their status."""
        return dict(self.record.counts)

    @property
    def size(self) -> int:
        """How many runs it has."""
        return sum(self.record.counts.values())

    @property
    def finished(self) -> bool:
        """Whether all its runs are."""
        return all(State(status).final for status, number in self.record.counts.items() if number)

    def describe(self) -> str:
        """What is going on, in a few words."""
        return ", ".join(f"{number} {status}" for status, number in self.counts.items() if number) or "no runs"

    def __repr__(self) -> str:
        return f"<Experiment {self.id} {self.name or ''} ({self.describe()})>"

    def _repr_html_(self) -> str:
        return experiment_html(self.record)


class SubmissionFacts(_WorkFacts[SubmissionRecord]):
    """Predictions handed in without an agent, as they were when the service was last asked.

    Attributes:
        status: `queued`, `grading`, `done` or `failed`.
    """

    _final = frozenset({"done", "failed"})

    @property
    def task(self) -> str:
        """Id of the task."""
        return self.record.task

    def __repr__(self) -> str:
        return f"<Submission {self.id} {self.task} {self.status}>"

    def _repr_html_(self) -> str:
        return fields_html(f"Submission {self.id}", self.record)


class BuildFacts(_WorkFacts[BuildRecord]):
    """The environment of an agent that is made ahead of its runs, as it was when the service was last asked.

    Attributes:
        status: `queued`, `building`, `ready` or `failed`.
    """

    _final = frozenset({"ready", "failed"})

    @property
    def agent(self) -> str:
        """Pinned to what was built; give it to `run`."""
        return self.record.agent

    @property
    def image(self) -> str | None:
        """Identity of what was built."""
        return self.record.image

    @property
    def cached(self) -> bool | None:
        """Whether it was there already."""
        return self.record.cached

    def __repr__(self) -> str:
        return f"<Build {self.id} {self.agent} {self.status}>"

    def _repr_html_(self) -> str:
        return fields_html(f"Build {self.id}", self.record)
