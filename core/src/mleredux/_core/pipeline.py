"""Runs from `queued` to their end: the stages in order, what follows from failures, and going on after a kill."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mleredux._core.data import DataStore
from mleredux._core.models import CAUSES, Cause, Event, Outcome, Report, State
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import BuildRequest, Built
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.failures import Failure, failure_of
from mleredux._core.stages.grade import grade
from mleredux._core.stages.grade_versions import grade_versions
from mleredux._core.stages.ledger import make_ledger
from mleredux._core.stages.prepare import prepare
from mleredux._core.stages.produce import mask_secrets, produce
from mleredux._core.stages.run_agent import agent_started, run_agent
from mleredux._core.stages.smoke import smoke_run
from mleredux._core.store import Run, RunStore
from mleredux._core.store.files import write_atomically
from mleredux._core.store.run import SCORES_FILE
from mleredux._core.store.states import STAGES, final_state
from mleredux.errors import MlereduxError, ResumeRefused, SandboxError

Progress = Callable[[Run, str], None]


@dataclass
class Pipeline:
    """Executes runs of a store.

    Attributes:
        store: Where runs are.
        catalogue: Plugins.
        data: Raw and prepared data.
        jobs: How many runs at most at once; slots keep them from asking too much of the machine.
        base_image: Base of images that are built, where the user names one.
        progress: Told what goes on in which run.
        smoke: Whether agents that ask for a smoke run get it.
        cancelled: Whether somebody else asked to stop all runs.
    """

    store: RunStore
    catalogue: Catalogue
    data: DataStore
    jobs: int = 1
    base_image: str | None = None
    progress: Progress = lambda _run, _message: None
    smoke: bool = True
    cancelled: Callable[[], bool] = lambda: False
    _stop: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Stop all runs: agents are told to end, states become `cancelled`, artifacts are kept."""
        self._stop.set()

    def execute(self, runs: list[Run]) -> list[Run]:
        """Bring runs to their end; the same runs, in the same order. Ctrl-C cancels them cleanly."""
        self.sweep(keep={run.id for run in runs})
        self.warm_up()
        slots = Slots(self.store.path)
        with ThreadPoolExecutor(max_workers=max(1, self.jobs), thread_name_prefix="run") as pool:
            futures = [pool.submit(self._execute_one, run, slots) for run in runs]
            try:
                while wait(futures, timeout=0.5).not_done:
                    pass
            except KeyboardInterrupt:
                self.cancel()
                wait(futures)
        for future in futures:
            future.result()
        return runs

    def sweep(self, keep: set[str] | frozenset[str] = frozenset()) -> list[str]:
        """Remove what killed programs left behind in sandboxes; ids of the runs it belonged to."""

        def alive(run_id: str) -> bool:
            return run_id in keep or self.store.is_alive(run_id)

        used = {row["sandbox"] for row in self.store.list() if row["status"] not in _FINAL}
        swept: list[str] = []
        for name in sorted(used & set(self.catalogue.entries("sandboxes"))):
            try:
                swept += self.catalogue.sandbox(name).sweep(self.store.owner, alive)
            except SandboxError:
                continue  # an engine that does not answer now is swept at a later start
        return swept

    def check_resumable(self, run: Run, *, build: bool = True) -> None:
        """Whether a run may go on.

        Args:
            run: The run.
            build: Whether its environment is made again, where it is gone, to compare it too.

        Raises:
            ResumeRefused: It is alive, or finished, or made with other versions; the message says which.
        """
        if run.alive:
            raise ResumeRefused(f"Run {run.id} is alive.", hint="Wait for it, or stop its process.")
        ended_well = run.state in (State.DONE, State.TIMED_OUT)
        if ended_well or (run.cause is not None and CAUSES[run.cause].counts):
            raise ResumeRefused(f"Run {run.id} is finished ({run.state}).", hint="Start a new one.")
        used, now = run.use, self._versions(run)
        differing = [
            f"{name} was {before}, is {now.get(name, 'not installed')}"
            for name, before in used.packages.items()
            if now.get(name) != before
        ]
        if used.task_version and (version := self.catalogue.task(run.spec.task).version) != used.task_version:
            differing.append(f"task {run.spec.task} was version {used.task_version}, is {version}")
        if used.agent_version and (version := self.catalogue.agent(run.spec.agent).version) != used.agent_version:
            differing.append(f"agent {run.spec.agent} was version {used.agent_version}, is {version}")
        if used.python and used.python != platform.python_version():
            differing.append(f"Python was {used.python}, is {platform.python_version()}")
        if build and used.image and not differing:
            with tempfile.TemporaryDirectory(prefix="mleredux-build-") as folder:
                agent, sandbox = (
                    self.catalogue.agent(run.spec.agent, run.spec.options),
                    self.catalogue.sandbox(run.spec.sandbox),
                )
                request = BuildRequest(agent, Path(folder) / "build.log", base_image=self.base_image)
                if (image := sandbox.build(request).identity) != used.image:
                    differing.append(f"the agent's environment was {used.image}, is {image}")
        if differing:
            raise ResumeRefused(
                f"Run {run.id} was started with other versions: {'; '.join(differing)}.",
                hint="Start a new run, or install those versions.",
            )

    def go_on(self, run: Run, slots: Slots | None = None) -> bool:
        """Bring one run to its end, in this thread and without sweeping: for programs that look after many.

        Returns:
            Whether there was anything to do: a run that has ended, well or badly, is left as it is.

        Raises:
            ResumeRefused: Another process works on it.
        """
        return self._execute_one(run, slots or Slots(self.store.path), ended_too=False)

    def warm_up(self) -> None:
        """Import plugins before there is work (and before there are threads)."""
        for hook in _HOOKS:
            self.catalogue.hook(hook)

    def _execute_one(self, run: Run, slots: Slots, *, ended_too: bool = True) -> bool:
        for _ in range(20):  # somebody who looks whether the run is alive holds its lock for a moment
            if run.lock.acquire():
                break
            time.sleep(0.05)
        else:
            raise ResumeRefused(f"Run {run.id} is alive in another process.")
        if run.state.final and not ended_too:
            run.lock.release()
            return False
        if run.state is State.CANCELLED:
            run.forget_cancel()
        run.observers.append(self._notify_plugins)
        context = StageContext(
            run=run,
            owner=self.store.owner,
            catalogue=self.catalogue,
            data=self.data,
            slots=slots,
            cancelled=lambda: self._stop.is_set() or self.cancelled() or run.cancel_asked,
            progress=lambda message: self.progress(run, message),
            base_image=self.base_image,
        )
        try:
            self._go_through_stages(context)
        finally:
            run.lock.release()
        return True

    def _go_through_stages(self, context: StageContext) -> None:
        run = context.run
        failure: Failure | None = None
        runners: dict[State, Callable[[StageContext], dict[str, Any]]] = {
            State.PREPARING: self._prepare,
            State.BUILDING: self._build,
            State.RUNNING: self._run_agent,
            State.GRADING: self._grade,
        }
        for stage in STAGES[:-1]:
            # What was prepared or built may be gone since; finding it again costs next to nothing.
            finished = run.finished_stages()
            if stage in STAGES[:2] and State.RUNNING in finished:
                continue
            if stage in finished and not (stage is State.PREPARING and self._data_are_gone(context)):
                continue
            failure = self._stage(context, stage, runners[stage])
            if failure:
                break
        outcome = run.outcome
        if failure is None and outcome is not None and outcome.cause is not None:
            failure = Failure(outcome.cause, outcome.message or CAUSES[outcome.cause].meaning)
        run.enter(State.PRODUCING)
        self.progress(run, "producing artifacts")
        started = time.monotonic()
        passed = {os.environ[name] for name in self._secrets(context) if name in os.environ}
        mask_secrets(run, sorted(passed | context.secrets))
        produce(run, self.catalogue)
        run.emit("stage", stage=State.PRODUCING, status="finished", seconds=_since(started))
        state = final_state(failure.cause if failure else None)
        run.enter(state, **({"cause": failure.cause, "message": failure.message} if failure else {}))
        self.progress(run, str(state))

    def _data_are_gone(self, context: StageContext) -> bool:
        try:
            return self.data.find(context.task) is None
        except MlereduxError:
            return True  # preparing says what is wrong

    def _stage(
        self, context: StageContext, stage: State, runner: Callable[[StageContext], dict[str, Any]]
    ) -> Failure | None:
        """Enter a stage, once more where the cause's policy says so; why it failed, where it did."""
        run, tries = context.run, 0
        while True:
            tries += 1
            run.enter(stage)
            started = time.monotonic()
            try:
                context.check_cancelled()
                result = runner(context)
            except Exception as error:  # whatever ends a stage has a cause and is recorded
                failure = failure_of(error)
                run.emit("stage", stage=stage, status="failed", seconds=_since(started), **vars(failure))
                if CAUSES[failure.cause].retried and tries == 1:
                    run.emit("retry", stage=stage, cause=failure.cause, message=failure.message)
                    continue
                return failure
            outcome = result.get("outcome")
            if outcome and outcome["cause"] == Cause.CANCELLED:  # not finished, so that a resumed run enters it again
                run.emit("stage", stage=stage, status="cancelled", seconds=_since(started), **result)
                return Failure(Cause.CANCELLED, outcome["message"])
            run.emit("stage", stage=stage, status="finished", seconds=_since(started), **result)
            return None

    def _prepare(self, context: StageContext) -> dict[str, Any]:
        context.say("preparing the data")
        context.slots.fit(context.run.spec.limits)
        prepared = prepare(context.task, self.catalogue, self.data, progress=context.say)
        used = context.run.use.task_data
        if used is not None and used != prepared.digest:
            raise ResumeRefused(f"The prepared data of {context.task.id} changed since the run began.")
        context.run.record_use(
            task_version=context.task.version,
            task_data=prepared.digest,
            agent_version=context.agent.version,
            packages=self._versions(context.run),
            python=platform.python_version(),
            git_commit=_git_commit(),
            host=platform.platform(),
        )
        return {}

    def _build(self, context: StageContext) -> dict[str, Any]:
        context.say("building the agent's environment")
        built = self._built(context)
        before = context.run.use.image
        if before is not None and before != built.identity:
            raise ResumeRefused(
                f"The environment of agent {context.agent.id} is now {built.identity}, the run began with {before}.",
                hint="Start a new run.",
            )
        context.run.record_use(image=built.identity)
        if self.smoke and context.agent.smoke is not None:
            smoke_run(context, built, self)
        return {"image": built.identity, "cached": built.cached}

    def _built(self, context: StageContext) -> Built:
        log, limit = context.run.logs_dir / "build.log", context.agent.build.time_limit
        request = BuildRequest(context.agent, log, context.say, context.base_image, limit)
        return context.sandbox.build(request)

    def _run_agent(self, context: StageContext) -> dict[str, Any]:
        outcome, submission, problem = run_agent(context, self._built(context))
        return {
            "outcome": outcome.model_dump(mode="json"),
            "submission": str(submission.relative_to(context.run.path)) if submission else None,
            "problem": problem,
        }

    def _grade(self, context: StageContext) -> dict[str, Any]:
        context.say("grading")
        run, ran = context.run, context.run.finished_stages()[State.RUNNING]
        prepared = prepare(context.task, self.catalogue, self.data, progress=context.say)
        outcome = Outcome.model_validate(ran["outcome"])
        report = grade(
            context.task,
            run.path / ran["submission"] if ran["submission"] else None,
            prepared.private,
            self.catalogue,
            problem=ran["problem"],
            shown_path=ran["submission"],
            limit=outcome.limit,
            ledger=make_ledger(context, prepared.private),
            cancelled=context.cancelled,
        )
        write_atomically(run.path / "report.json", report.model_dump_json(indent=1) + "\n")
        return {
            "score": report.score,
            "valid": report.valid_submission,
            "versions": self._grade_versions(context, report),
        }

    def _grade_versions(self, context: StageContext, report: Report) -> int:
        """Write the score over time; how many versions there are."""
        run, versions = context.run, context.run.submissions()
        if not versions:
            return 0
        context.say(f"grading {len(versions)} versions of the submission")
        prepared = prepare(context.task, self.catalogue, self.data, progress=context.say)
        scores = grade_versions(
            context.task,
            versions,
            prepared.private,
            self.catalogue,
            started_at=agent_started(run),
            graded={path: report for path in [run.path / report.submission_path] if path.is_file()},
            cancelled=context.cancelled,
        )
        content = [score.model_dump(mode="json") for score in scores]
        write_atomically(run.path / SCORES_FILE, json.dumps(content, indent=1) + "\n")
        return len(scores)

    def _versions(self, run: Run) -> dict[str, str]:
        """Versions of mleredux and of the plugins that this run uses."""
        names = {
            ("tasks", run.spec.task.rpartition("@")[2].partition("+")[0]),
            ("techniques", run.spec.task.partition("@")[0].partition("+")[0]),
            ("agents", run.spec.agent),
            ("sandboxes", run.spec.sandbox),
        }
        plugins = [
            self.catalogue.entries(kind)[name].plugin for kind, name in names if name in self.catalogue.entries(kind)
        ]
        versions = {plugin.distribution: plugin.version for plugin in plugins if plugin.distribution and plugin.version}
        from mleredux import __version__

        return dict(sorted({"mleredux": __version__, **versions}.items()))

    def _secrets(self, context: StageContext) -> tuple[str, ...]:
        try:
            return context.agent.secrets
        except MlereduxError:
            return ()

    def _notify_plugins(self, run: Run, event: Event) -> None:
        for implementation in self.catalogue.hook("mleredux_run_event").get_hookimpls():
            try:
                implementation.function(*({"run": run, "event": event}[name] for name in implementation.argnames))
            except Exception as error:  # no observer's error ends a run; an event of it would come back to it
                self.progress(run, f"plugin {implementation.plugin_name} failed on an event: {error}")


_HOOKS = (
    "mleredux_prepare",
    "mleredux_run_agent",
    "mleredux_grade",
    "mleredux_produce_artifacts",
    "mleredux_run_event",
)
_FINAL = frozenset(str(state) for state in State if state.final)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def _git_commit() -> str | None:
    """Commit of the checkout that mleredux runs from, if it does."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() or None
