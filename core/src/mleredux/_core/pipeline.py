"""Execute runs from `queued` until they end: the stages in order, failure handling, and resuming after a kill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mleredux._core import forkserver
from mleredux._core.data.datastore import DataStore
from mleredux._core.executors import Executor, open_nodes
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.discovery import provided
from mleredux._core.resume import sweep
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.sandboxes.variables import secret_values
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.failures import Failure, failure_of
from mleredux._core.stages.grade import sweep_folders
from mleredux._core.stages.produce import PRODUCERS, mask_secrets, produce
from mleredux._core.stages.steps import STEPS
from mleredux._core.store import Run, RunStore
from mleredux._core.store.states import STAGES, final_state
from mleredux.errors import MlereduxError, ResumeRefused
from mleredux.models import CAUSES, Cause, Event, State
from mleredux.models.events import AgentEnded, ProduceEnded, Retry, StageEnded, StateEntered

Progress = Callable[[Run, str], None]


@dataclass
class Pipeline:
    """Executes runs of a store.

    Attributes:
        store: The store of runs.
        catalogue: The plugins.
        data: The store of raw and prepared data.
        jobs: Maximum number of concurrent runs; slots limit the resources they use.
        base_image: Base image for builds, if the user specified one.
        progress: Called with a run and a progress message.
        smoke: Whether to execute the smoke runs that agents declare.
        cancelled: Whether cancellation of all runs was requested elsewhere.
        tracked: Whether plugins receive the runs' events.
        executor: The executor of the runs; None: this process.
        bound: Whether to end agents when this program is killed.
        object_store: URL of an object store through which the executor's nodes get runs and data; None: they share a
            file system.
    """

    store: RunStore
    catalogue: Catalogue
    data: DataStore
    jobs: int = 1
    base_image: str | None = None
    progress: Progress = lambda _run, _message: None
    """Called with a run and a sentence whenever a stage starts or ends."""
    smoke: bool = True
    cancelled: Callable[[], bool] = lambda: False
    """Returns whether the user has stopped the runs; called about every second."""
    tracked: bool = True
    executor: Executor | None = None
    object_store: str | None = None
    bound: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Cancel all runs: agents are stopped, states become `cancelled`, artifacts are kept."""
        self._stop.set()

    def execute(self, runs: list[Run]) -> list[Run]:
        """Execute runs until they end; return the same runs, in the same order. Ctrl-C cancels them cleanly."""
        if self.executor is not None:
            open_nodes(self.catalogue).execute(self, runs)
            return runs
        slots = self.open_slots(run.id for run in runs)
        self.warm_up()
        forkserver.warm()
        with ThreadPoolExecutor(max_workers=max(1, self.jobs), thread_name_prefix="run") as pool:
            futures = [pool.submit(self._execute, run, slots) for run in runs]
            try:
                while wait(futures, timeout=0.5).not_done:
                    pass
            except KeyboardInterrupt:
                self.cancel()
                wait(futures)
        for future in futures:
            future.result()
        return runs

    def open_slots(self, keep: Iterable[str] = ()) -> Slots:
        """Return the slots of the machine, after ending the agents of killed programs; this is repeated before a slot
        of such a program is given to another run.

        Args:
            keep: Ids of runs whose agents may continue, because the runs will be resumed.
        """
        clean = partial(sweep, self.store, self.catalogue, keep=set(keep))
        clean()
        return Slots(self.store.path, vacate=clean)

    def execute_run(self, run: Run, slots: Slots | None = None) -> bool:
        """Execute one run until it ends, in this thread and without sweeping, for programs that manage many runs.

        Args:
            run: The run.
            slots: The slots of the machine; None: those of the runs directory.

        Returns:
            Whether there was anything to do: a run that has ended is not changed.

        Raises:
            ResumeRefused: Another process is executing the run.
        """
        if self.executor is not None:
            began = not run.state.final
            open_nodes(self.catalogue).execute(self, [run])
            return began
        return self._execute(run, slots or Slots(self.store.path), ended_too=False)

    go_on = execute_run
    """The former name, which works until 0.4."""

    def stopping(self) -> bool:
        """Return whether all runs should be cancelled."""
        return self._stop.is_set() or self.cancelled()

    def warm_up(self) -> None:
        """Import plugins before there is work or any thread; remove files of killed graders."""
        sweep_folders()
        for hook in ("mleredux_prepare", "mleredux_run_agent", "mleredux_grade", *PRODUCERS, "mleredux_run_event"):
            self.catalogue.hook(hook)

    def _execute(self, run: Run, slots: Slots, *, ended_too: bool = True) -> bool:
        for _ in range(20):  # a process that checks whether the run is alive briefly holds its lock
            if run.lock.acquire():
                break
            time.sleep(0.05)
        else:
            raise ResumeRefused(f"Run {run.id} is being executed by another process.")
        if run.state.final and not ended_too:
            run.lock.release()
            return False
        if run.state is State.CANCELLED:
            run.forget_cancel()
        if self.tracked:
            run.observers.append(self._notify_plugins)
        context = StageContext(
            run=run,
            owner=self.store.owner,
            catalogue=self.catalogue,
            data=self.data,
            slots=slots,
            cancelled=lambda: self.stopping() or run.cancel_asked,
            progress=lambda message: self.progress(run, message),
            base_image=self.base_image,
            bound=self.bound,
            smoke=(lambda built: provided("smoke_run")(context, built, self)) if self.smoke else None,
        )
        try:
            self._run_stages(context)
        finally:
            run.lock.release()
        return True

    def _run_stages(self, context: StageContext) -> None:
        run = context.run
        failure: Failure | None = None
        for stage in STAGES[:-1]:
            # Prepared data or an image may have been deleted in the meantime; finding them again is cheap.
            finished = run.log.state.finished
            if stage in STAGES[:2] and State.RUNNING in finished:
                continue
            if stage in finished and not (stage is State.PREPARING and self._data_are_missing(context)):
                continue
            if stage is State.GRADING and run.held:
                run.enter(stage)
                self.progress(run, "held: `mleredux runs release-grades` grades it")
                return
            failure = _run_stage(stage, context)
            if failure:
                break
        outcome = run.outcome
        if failure is None and outcome is not None and outcome.cause is not None:
            failure = Failure(outcome.cause, outcome.message or CAUSES[outcome.cause].meaning)
        run.enter(State.PRODUCING)
        self.progress(run, "producing artifacts")
        started = time.monotonic()
        mask_secrets(run, sorted(secret_values(run.spec, self.catalogue) | context.secrets))
        produce(run, self.catalogue)
        run.emit(ProduceEnded(seconds=_since(started)))
        state = final_state(failure.cause if failure else None)
        run.enter(state, **(vars(failure) if failure else {}))
        self.progress(run, str(state))

    def _data_are_missing(self, context: StageContext) -> bool:
        try:
            return self.data.find(context.task) is None
        except MlereduxError:
            return True  # preparation reports the problem

    def _notify_plugins(self, run: Run, event: Event) -> None:
        for implementation in self.catalogue.hook("mleredux_run_event").get_hookimpls():
            try:
                implementation.function(*({"run": run, "event": event}[name] for name in implementation.argnames))
            except Exception as error:  # an observer's error does not end a run; an event would call the observer again
                self.progress(run, f"plugin {implementation.plugin_name} failed on an event: {error}")


def _run_stage(stage: State, context: StageContext) -> Failure | None:
    """Enter a stage, repeatedly if the run's retries allow it; return the failure, if any."""
    run = context.run
    while True:
        run.enter(stage)
        started = time.monotonic()
        try:
            context.check_cancelled()
            result = STEPS[stage](context)
        except Exception as error:  # every error that ends a stage is recorded with its cause
            failure = failure_of(error)
            if _again(context, stage, failure, started):
                continue
            run.emit(StageEnded(stage=stage, status="failed", seconds=_since(started), **vars(failure)))
            return failure
        outcome = result.outcome if isinstance(result, AgentEnded) else None
        if outcome and outcome.cause and _again(context, stage, Failure(outcome.cause, outcome.message or ""), started):
            continue
        cancelled = outcome is not None and outcome.cause is Cause.CANCELLED
        # A cancelled stage is not finished, so that a resumed run enters it again.
        update = {"status": "cancelled" if cancelled else "finished", "seconds": _since(started)}
        run.emit(result.model_copy(update=update))
        return Failure(Cause.CANCELLED, str(outcome.message)) if outcome and cancelled else None


def _again(context: StageContext, stage: State, failure: Failure, started: float) -> bool:
    """Return whether a failed stage is retried; if so, record the failure."""
    run, tried = context.run, 0
    for event in reversed(run.events()):
        what = event.payload
        if isinstance(what, StateEntered) and what.state.final:
            break  # a user has resumed the run since
        tried += isinstance(what, Retry) and (what.stage, what.cause) == (stage, failure.cause)
    retries: Mapping[Any, int] = run.spec.limits.retries
    if tried >= retries.get(failure.cause, CAUSES[failure.cause].retried):
        return False
    run.emit(StageEnded(stage=stage, status="failed", seconds=_since(started), **vars(failure)))
    run.emit(Retry(stage=stage, cause=failure.cause, message=failure.message))
    context.say(f"{failure.message} Trying again.")
    return True


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)
