"""Properties of runs, experiments and other resources that need no request, for both clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

from mleredux.models import Model
from mleredux.models.formats import plain

from mleredux_client.display import experiment_html, fields_html, run_html
from mleredux_client.models.run import BuildRecord, ExperimentRecord, QueuePlace, RunRecord, State, SubmissionRecord

Record = TypeVar("Record", bound=Model)
_Work = TypeVar("_Work", SubmissionRecord, BuildRecord)
_Value = TypeVar("_Value")


class _Fact(Generic[_Value]):
    """A read-only attribute: the record's field of the same name."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: Facts[Any] | None, owner: type | None = None) -> _Value:
        return cast("_Value", self if view is None else getattr(view.record, self._name))

    def __set__(self, view: Facts[Any], value: object) -> None:
        raise AttributeError(f"{self._name!r} can't be set: the service determines it.")


class Facts(ABC, Generic[Record]):
    """A resource as of the last response.

    Attributes:
        record: The complete record.
    """

    _model: ClassVar[type[Any]]
    """Class of the record."""
    _kind: ClassVar[str]
    """The type of resource; its path is `/v1/KINDs/ID`."""

    def __init__(self, record: Record) -> None:
        self.record = record

    id = _Fact[str]("Its id on the service.")

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether it is final."""

    @abstractmethod
    def describe(self) -> str:
        """Return the progress in a few words."""


class RunFacts(Facts[RunRecord]):
    """A run as of the last response (to `refresh`, `wait`, or at the end of `events`)."""

    _model, _kind = RunRecord, "run"

    task = _Fact[str]("Id of the task.")
    agent = _Fact[str]("Id of the agent, or its pinned reference.")
    sandbox = _Fact[str | None]("Where the agent runs.")
    seed = _Fact[int]("The seed given to the agent.")
    cause = _Fact[str | None]("Why it failed: `agent_crashed`, `out_of_memory`, …")
    message = _Fact[str | None]("One sentence on why it failed.")
    waiting_for = _Fact[str | None]("Why it is still queued, or does not continue during an outage.")
    score = _Fact[float | None]("The score of the submission that counts.")
    medal = _Fact[str | None]("`gold`, `silver`, `bronze` or None.")
    verdict = _Fact[str | None]("How far the result can be trusted: `verified`, `tainted`, …")
    valid = _Fact[bool | None]("Whether the submission could be scored.")
    created_at = _Fact[datetime | None]("When it was requested.")
    started_at = _Fact[datetime | None]("When it left the queue.")
    ended_at = _Fact[datetime | None]("When it became final.")
    notes = _Fact[str | None]("As given by `update`.")

    @property
    def queue(self) -> QueuePlace | None:
        """Its place in the queue, and its expected start; None once it has started."""
        return self.record.queue if self.waiting_for else None

    @property
    def labels(self) -> dict[str, str]:
        """Its labels, by name."""
        return dict(self.record.labels)

    @property
    def state(self) -> State:
        """`queued`, `running`, `done`, …; see also `run.state.final`."""
        return State(self.record.status)

    @property
    def status(self) -> State:
        """The same as `state`."""
        return self.state

    @property
    def finished(self) -> bool:
        """Whether it is final."""
        return self.state.final

    def describe(self) -> str:
        """Return the progress in a few words."""
        if not self.finished and self.waiting_for:
            return f"{self.state}: {self.waiting_for}"
        score = f", score {plain(self.score, 6)}" if self.score is not None else ""
        medal = f", {self.medal} medal" if self.medal else ""
        medal += f", {self.verdict}" if self.verdict not in (None, "not checked") else ""
        why = f": {self.message}" if self.message else ""
        return f"{self.state}{score}{medal}{why}"

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.task} {self.agent} {self.describe()}>"

    def _repr_html_(self) -> str:
        return run_html(self.record)


class ExperimentFacts(Facts[ExperimentRecord]):
    """An experiment as of the last response."""

    _model, _kind = ExperimentRecord, "experiment"

    name = _Fact[str | None]("As given.")

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status."""
        return dict(self.record.counts)

    @property
    def size(self) -> int:
        """Number of its runs."""
        return sum(self.record.counts.values())

    @property
    def finished(self) -> bool:
        """Whether all its runs are finished."""
        return all(State(status).final for status, number in self.record.counts.items() if number)

    def describe(self) -> str:
        """Return the progress in a few words."""
        return ", ".join(f"{number} {status}" for status, number in self.counts.items() if number) or "no runs"

    def __repr__(self) -> str:
        return f"<Experiment {self.id} {self.name or ''} ({self.describe()})>"

    def _repr_html_(self) -> str:
        return experiment_html(self.record)


class WorkFacts(Facts[_Work]):
    """The common base class of submissions and builds."""

    _final: ClassVar[frozenset[str]]

    status = _Fact[str]("`queued`, the current step, or the final state.")
    message = _Fact[str | None]("One sentence on why it failed.")

    @property
    def finished(self) -> bool:
        """Whether it is final."""
        return self.status in self._final

    def describe(self) -> str:
        """Return its status."""
        return self.status

    def _repr_html_(self) -> str:
        return fields_html(f"{self._kind.capitalize()} {self.id}", self.record)


class SubmissionFacts(WorkFacts[SubmissionRecord]):
    """Predictions submitted without an agent, as of the last response.

    Attributes:
        status: `queued`, `grading`, `done` or `failed`.
    """

    _model, _kind, _final = SubmissionRecord, "submission", frozenset({"done", "failed"})

    task = _Fact[str]("Id of the task.")

    def __repr__(self) -> str:
        return f"<Submission {self.id} {self.task} {self.status}>"


class BuildFacts(WorkFacts[BuildRecord]):
    """The environment of an agent that is built ahead of its runs, as of the last response.

    Attributes:
        status: `queued`, `building`, `ready` or `failed`.
    """

    _model, _kind, _final = BuildRecord, "build", frozenset({"ready", "failed"})

    agent = _Fact[str]("Pinned to the build; pass it to `run`.")
    image = _Fact[str | None]("Identity of the built environment.")
    cached = _Fact[bool | None]("Whether it existed already.")

    def __repr__(self) -> str:
        return f"<Build {self.id} {self.agent} {self.status}>"
