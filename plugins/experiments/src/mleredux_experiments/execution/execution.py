"""Execution of an experiment on this machine: each cell runs once, even if the program is killed."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from mleredux.errors import MlereduxError, ResumeRefused
from mleredux.models.formats import duration, plain
from mleredux.plugin.artifact import CAUSES, Cause, Run, RunStore
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.experiment import Cell, RunPlan
from mleredux.plugin.files import FileLock
from mleredux.plugin.host import Pipeline, Slots, check_resumable

from mleredux_experiments.execution.plan import planned_cells
from mleredux_experiments.execution.record import Record
from mleredux_experiments.results.table import grouped

State = Literal["missing", "interrupted", "running", "broken", "ended"]
"""State of a cell: it has no run (or a cancelled one), an interrupted run, a live run, only runs that failed because of
the environment or the task, or a run that ended and counts."""
STATES: tuple[State, ...] = get_args(State)
_POLL_SECONDS = 0.5
_ENDED = ("done", "failed", "timed_out")
_FINAL = (*_ENDED, "cancelled", "damaged")


@dataclass(frozen=True)
class Place:
    """A cell with its runs.

    Attributes:
        cell: Arm, task and seed.
        plan: The run to create.
        runs: Rows of the store's index, the newest first: the current attempt, then the attempts it replaces.
        state: The state, which determines the next step.
    """

    cell: Cell
    plan: RunPlan
    runs: tuple[dict[str, Any], ...]
    state: State

    @property
    def current(self) -> dict[str, Any] | None:
        """Return the run that counts, or else the newest."""
        return next((run for run in self.runs if _counts(run)), self.runs[0] if self.runs else None)


@dataclass
class Spent:
    """Resources used by the runs of an experiment."""

    cost_usd: float = 0.0
    hours: float = 0.0
    paused_hours: float = 0.0
    unpriced: int = 0
    """Number of runs that include calls of unknown price."""

    def add(self, run: Run) -> None:
        """Add a run that has ended."""
        outcome, llm = run.outcome, run.log.state.llm
        self.hours += (outcome.seconds if outcome else 0.0) / 3600
        self.paused_hours += (outcome.paused_seconds if outcome else 0.0) / 3600
        if llm is not None:
            self.cost_usd += llm.cost_usd or 0.0
            self.unpriced += llm.cost_usd is None and llm.calls > 0


@dataclass
class Execution:
    """The runs of an experiment in a runs folder.

    Args:
        record: Its frozen plan.
        folder: The folder that contains the record.
        store: The store of the runs.
        catalogue: The plugins.
        progress: Called with a run and a short message.
        executor: Id of the executor for the runs; None: this process executes them.
        object_store: URL of the object store through which its nodes receive runs; None: they share a file system.
    """

    record: Record
    folder: Path
    store: RunStore
    catalogue: Catalogue
    progress: Callable[[Run, str], None] = lambda _run, _message: None
    executor: str | None = None
    object_store: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    looked: int = 0
    """Number of complete seeds at the last look of the sequential test."""

    @cached_property
    def planned(self) -> list[tuple[Cell, RunPlan]]:
        """Return all cells in the order of the plan."""
        return planned_cells(self.record.plan, self.catalogue, self.record.pinned)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of its runs, the newest first."""
        return self.store.rows(experiment=self.record.name)

    def ended_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of its runs that have ended."""
        return (row for row in self.rows() if row["status"] in (*_ENDED, "cancelled"))

    def ended(self) -> Iterator[Run]:
        """Yield its runs that have ended."""
        return (self.store.get(row["id"]) for row in self.ended_rows())

    def is_alive(self, run_id: str) -> bool:
        """Return whether a run that has not ended is being executed."""
        return self.store.is_alive(run_id)

    def places(self) -> list[Place]:
        """Return all cells with their runs, in the order of the plan."""
        attempts = grouped(((row["arm"] or row["agent"], row["task"], row["seed"]), row) for row in self.rows())
        places = []
        for cell, plan in self.planned:
            runs = tuple(attempts.get((cell.arm, plan.task, cell.seed), ()))
            places.append(Place(cell, plan, runs, self._state(runs)))
        return places

    def _state(self, runs: tuple[dict[str, Any], ...]) -> State:
        if any(_counts(run) for run in runs):
            return "ended"
        if unfinished := [run for run in runs if run["status"] not in _FINAL]:
            alive = any(self.is_alive(run["id"]) for run in unfinished)
            return "running" if alive else "interrupted"
        latest = runs[0] if runs else None
        return "broken" if latest is not None and latest["cause"] != Cause.CANCELLED and latest["cause"] else "missing"

    def run(self, *, jobs: int = 1, broken: bool = False, only: Callable[[Cell], bool] = lambda _cell: True) -> None:
        """Execute all cells that have not ended, until a budget is used up, the stopping rule applies, or `stop` is
        set.

        Args:
            jobs: Maximum number of concurrent runs.
            broken: Rerun the cells whose runs failed because of the environment or the task; these runs are kept.
            only: Returns whether to execute a cell.

        Raises:
            MlereduxError: Another process is executing the experiment.
        """
        with self.claim():
            self._run(jobs, broken, only)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Keep other processes from executing or changing the experiment.

        Raises:
            MlereduxError: Another process is executing or changing it.
        """
        with FileLock(self.folder / ".lock").attempt() as acquired:
            if not acquired:
                message = f"Experiment {self.record.name} is being executed by another process."
                raise MlereduxError(message, hint="Wait for it, or stop it.")
            yield

    def _run(self, jobs: int, broken: bool, only: Callable[[Cell], bool]) -> None:
        places = [place for place in self.places() if only(place.cell)]
        wanted = {"missing", "interrupted", *(("broken",) if broken else ())}
        todo = [(place, self._resumable(place)) for place in places if place.state in wanted]
        resumed = [run for _, run in todo if run is not None]
        # The first call cleans up after killed programs in sandboxes, even if there is nothing to resume.
        for image in {None, *(self._image(run.spec.arm) for run in resumed)}:
            self.pipeline(image, jobs).execute([run for run in resumed if self._image(run.spec.arm) == image])
        if any(run.cause is Cause.CANCELLED for run in resumed):
            self.stop.set()
        self._feed(deque(place for place, run in todo if run is None), jobs)

    def _feed(self, queue: deque[Place], jobs: int) -> None:
        """Start cells as others end, until something stops the experiment."""
        slots = None if self.executor else self.pipeline(None).open_slots()
        spent, running = self.spent(), set[Future[Run]]()
        reason = self._stop_reason(spent)
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="run") as pool:
            try:
                while True:
                    while queue and len(running) < jobs and reason is None and not self.stop.is_set():
                        running.add(pool.submit(self._execute, queue.popleft(), slots))
                    if not running:
                        break
                    done, running = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                    for future in done:
                        spent.add(future.result())
                    if done and queue:
                        reason = self._stop_reason(spent)
            except BaseException:
                self.stop.set()
                wait(running)
                raise
        self.record.stopped = reason if queue else None
        self.record.save(self.folder)

    def _stop_reason(self, spent: Spent) -> str | None:
        return self.over_budget(spent) or self._decided()

    def _execute(self, place: Place, slots: Slots | None) -> Run:
        run = self.store.create(place.plan, self.record.data_dir)
        self.progress(run, "queued")
        self.pipeline(self._image(place.cell.arm)).execute_run(run, slots)
        return run

    def _image(self, arm: str | None) -> str | None:
        return self.record.plan.all_arms()[arm or ""].image

    def pipeline(self, image: str | None, jobs: int = 1) -> Pipeline:
        """Return the pipeline that completes the runs."""
        return Pipeline(
            self.store,
            self.catalogue,
            DataStore(self.record.data_dir),
            jobs,
            image,
            progress=self.progress,
            cancelled=self.stop.is_set,
            executor=self.catalogue.executor(self.executor) if self.executor else None,
            object_store=self.object_store if self.executor else None,
        )

    def _resumable(self, place: Place) -> Run | None:
        """Return the interrupted run of a cell; if other versions are installed now, cancel it instead."""
        if place.state != "interrupted":
            return None
        run = self.store.get(next(row["id"] for row in place.runs if row["status"] not in _FINAL))
        try:
            check_resumable(run, self.catalogue, build=False)
        except ResumeRefused as error:
            run.ask_to_cancel()
            self.pipeline(None).execute_run(run)
            self.record.changed(f"{error.message} The run was cancelled; its cell will run again.", self.results())
            self.record.save(self.folder)
            return None
        return run

    def spent(self) -> Spent:
        """Return the resources used by all runs, including those that were replaced."""
        spent = Spent()
        for run in self.ended():
            spent.add(run)
        return spent

    def over_budget(self, spent: Spent) -> str | None:
        """Return a sentence that names the budget that is used up, or None."""
        stop = self.record.plan.stop
        if stop.max_cost_usd is not None and spent.cost_usd >= stop.max_cost_usd:
            return f"The budget of ${plain(stop.max_cost_usd)} is used up: the runs cost ${spent.cost_usd:.2f}."
        if stop.max_hours is not None and spent.hours >= stop.max_hours:
            most, took = duration(3600 * stop.max_hours), duration(3600 * spent.hours)
            return f"The budget of {most} is used up: the runs took {took}."
        return None

    def _decided(self) -> str | None:
        """Return a sentence about the result of the sequential test if it has decided, else None."""
        if self.record.plan.stop.rule != "sequential":
            return None
        from mleredux_experiments.execution.sequence import complete, decision
        from mleredux_experiments.results.sources import load

        done = complete((place.cell.seed, place.state == "ended") for place in self.places())
        if len(done) < 2 or len(done) <= self.looked:
            return None
        self.looked = len(done)
        results = load(self.store.path, experiment=self.record.name)
        return decision(self.record.plan, results.keep(row for row in results.rows if row.seed in done), len(done))

    def results(self) -> int:
        """Return the number of runs that ended and count."""
        return sum(_counts(row) for row in self.rows())

    def status(self) -> dict[str, Any]:
        """Return the experiment's progress: cells in total and by arm, cost, hours, failures, changes."""
        places, spent = self.places(), self.spent()
        causes = Counter(place.current["cause"] for place in places if place.current and place.current["cause"])
        return {
            "name": self.record.name,
            "question": self.record.plan.experiment.question,
            "path": str(self.folder),
            **progress((place.cell.arm, place.state) for place in places),
            "failures": dict(causes),
            "attempts": sum(len(place.runs) for place in places),
            "hours": round(spent.hours, 4),
            "paused_hours": round(spent.paused_hours, 4),
            "cost_usd": round(spent.cost_usd, 4),
            "unpriced": spent.unpriced,
            "stopped": self.record.stopped,
            "deviations": [change.model_dump(mode="json") for change in self.record.deviations],
            "digest": self.record.digest,
        }


def progress(cells: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the numbers of cells by state, in total and by arm, as a status contains them.

    Args:
        cells: The arm and the state of each cell.
    """
    arms = {arm: Counter({**Counter(states), "total": len(states)}) for arm, states in grouped(cells).items()}
    columns = ("total", *STATES)
    return {
        **{column: sum(counts[column] for counts in arms.values()) for column in columns},
        "arms": [{"arm": name, **{column: counts[column] for column in columns}} for name, counts in arms.items()],
    }


def _counts(row: dict[str, Any]) -> bool:
    return row["status"] in _ENDED and (row["cause"] is None or CAUSES[Cause(row["cause"])].counts)
