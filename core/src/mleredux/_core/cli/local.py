"""The backend of this machine: its plugins, runs and data."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mleredux._core.cli.backend import Batch, Record, RunPage, RunRequest, RunView
from mleredux._core.cli.interrupts import cancelling
from mleredux._core.cli.output import echo, growing, write_log
from mleredux._core.locations import default_data_dir, is_prepared
from mleredux._core.records import agent_record, listed, task_record
from mleredux.errors import DataError, MlereduxError, NotApplicable, NotFound, StoreError, TaskBroken, file_errors
from mleredux.models.formats import short_reference

if TYPE_CHECKING:
    from mleredux._core.cli.run_progress import Progress
    from mleredux._core.data.datastore import DataStore
    from mleredux._core.pipeline import Pipeline
    from mleredux._core.plugins import Catalogue
    from mleredux._core.store import Run, RunStore
    from mleredux.models import Event, Report, RunPlan, Verdict
    from mleredux.models.request import Request


class LocalBackend:
    """The backend of commands without `--server`.

    Args:
        catalogue: The plugins.
        runs_dir, data_dir: Folders for runs and data; None means the default folders.
    """

    def __init__(self, catalogue: Catalogue, runs_dir: str | None = None, data_dir: str | None = None) -> None:
        self._catalogue, self._runs_dir, self._data_dir = catalogue, runs_dir, data_dir

    @cached_property
    def store(self) -> RunStore:
        """The store of runs."""
        from mleredux._core.store import RunStore

        return RunStore(self._runs_dir)

    @property
    def place(self) -> str:
        """Where runs are stored."""
        return f"in {self.store.path}"

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders for runs and for data."""
        return self.store.path, Path(self._data_dir) if self._data_dir else default_data_dir()

    def worked(self, run_id: str) -> float:
        """Return the seconds that a run's agent worked."""
        outcome = self.store.get(run_id).outcome
        return outcome.seconds if outcome else 0.0

    def listed(self, kind: str, *, sets: tuple[str, ...], category: str | None, technique: str | None) -> list[Record]:
        """Return all objects of a type; for tasks, also whether they are prepared."""
        rows = listed(self._catalogue, kind, sets=sets, category=category, technique=technique)
        if kind != "tasks":
            return rows
        return [{**row, "prepared": is_prepared(self.folders[1], row["id"])} for row in rows]

    def task(self, name: str, *, obfuscated: bool) -> Record:
        """Return the properties of a task, its description, and where its data is stored."""
        from mleredux._core.data.datastore import DataStore

        declared = self._catalogue.task(name)
        try:
            prepared = DataStore(self._data_dir).find(declared)
            state = str(prepared.public.parent) if prepared else "not prepared"
        except DataError as error:
            prepared, state = None, str(error)
        return {**task_record(declared, obfuscated=obfuscated), "prepared": prepared is not None, "data": state}

    def agent(self, name: str) -> Record:
        """Return the properties of an agent."""
        return agent_record(self._catalogue.agent(name))

    def grade(self, submission: Path, task: str, *, project: str | None) -> Report:
        """Grade a file against the local answers."""
        from mleredux._core.api import grade

        return grade(submission, task, data_dir=self._data_dir)

    def grade_jsonl(self, listed: Path, *, output_dir: Path | None, project: str | None) -> tuple[Record, Path | None]:
        """Grade each line of a `submission.jsonl`."""
        from mleredux._core.plugins.discovery import provided

        graded: tuple[Record, Path | None] = provided("grade_jsonl")(
            listed, output_dir=output_dir, data_dir=self._data_dir
        )
        return graded

    def validate(self, submission: Path, task: str) -> Verdict:
        """Check whether a file is well-formed."""
        from mleredux._core.api import validate

        return validate(submission, task, data_dir=self._data_dir)

    def create(self, request: RunRequest) -> Batch:
        """Create runs in the store."""
        from mleredux._core.data.datastore import DataStore
        from mleredux._core.planning.selection import failed_last

        data = DataStore(self._data_dir)
        how: dict[str, Any] = {"jobs": request.jobs, "base_image": request.base_image, "smoke": not request.watch}
        pipeline = self._pipeline(data, request.executor, request.store, **how)
        plans = self._repeated(request) if request.replay is not None else self._plan(request.runs)
        plans = failed_last(plans, self.store.rows()) if request.last_failed else plans
        plans = self._applicable(request.runs, data, plans)
        self._have_data(request, data, plans)
        agents = [self._catalogue.agent(name) for name in dict.fromkeys(plan.agent for plan in plans)]
        remarks = [remark for agent in agents for remark in agent.remarks]
        for sentence in (*self._not_isolated(plans, request.runs), *remarks):
            echo(sentence, err=True)
        runs = [self.store.create(plan, data.path.absolute()) for plan in plans]
        attend = [self._catalogue.agent(run.spec.agent).attend.format(run=run.id) for run in runs]
        return _LocalBatch(runs, pipeline, "\n".join(filter(None, attend)))

    def resume(self, name: str, base_image: str | None, executor: str | None, store: str | None) -> Batch:
        """Open an interrupted run to resume it."""
        from mleredux._core.data.datastore import DataStore
        from mleredux._core.resume import check_resumable

        run = self.store.get(name)
        pipeline = self._pipeline(DataStore(run.spec.data_dir), executor, store, base_image=base_image)
        check_resumable(run, self._catalogue, base_image=base_image)
        return _LocalBatch([run], pipeline)

    def _pipeline(self, data: DataStore, executor: str | None, store: str | None, **how: Any) -> Pipeline:
        from mleredux._core.pipeline import Pipeline

        place = self._catalogue.executor(executor) if executor else None
        return Pipeline(self.store, self._catalogue, data, **how, executor=place, object_store=store if place else None)

    def finish(self, batch: Batch, progress: Progress, *, cancel_on_interrupt: bool = False) -> list[RunView] | None:
        """Execute runs; Ctrl-C, SIGTERM and SIGHUP cancel them."""
        from mleredux._core.cli.exit_codes import exit_code
        from mleredux._core.cli.run_progress import show_submission
        from mleredux.models import State

        assert isinstance(batch, _LocalBatch)
        for run in batch.runs:
            progress.add(run.id, run.spec.task, run.spec.agent, seed=run.spec.seed, limit=run.spec.limits.time_limit)
            run.observers.append(partial(show_submission, progress))
            if progress.following:
                progress.in_background(partial(_copy_log, run, progress, len(batch.runs) > 1))
        progress.jobs = batch.pipeline.jobs

        def update(run: Run, message: str) -> None:
            ended = message in set(State)
            progress.update(run.id, message, ended=ended)
            if ended and batch.exit_first and exit_code(run.record()):
                batch.pipeline.cancel()

        batch.pipeline.progress = update
        with cancelling(batch.pipeline.cancel):
            return [_view(run) for run in batch.pipeline.execute(batch.runs)]

    def _plan(self, runs: Request) -> list[RunPlan]:
        """Return all runs, validated before the first is created."""
        from mleredux._core.cli.consent import consent
        from mleredux._core.planning.plans import plan

        if not runs.arms:
            known = ", ".join(self._catalogue.entries("agents")) or "none"
            raise click.UsageError(f"Choose an agent with --agent; installed: {known}.")
        return plan(runs, self._catalogue, granted=partial(consent, self._catalogue), own_machine=True)

    def _repeated(self, request: RunRequest) -> list[RunPlan]:
        """Return a run that repeats another with the same options, unless the request specifies others; the agent may
        require some of them."""
        source, arms = self.store.get(str(request.replay)).spec, dict(request.runs.arms)
        for name, arm in request.runs.arms.items():
            if arm.agent == source.agent:
                arms[name] = arm.model_copy(update={"options": source.options | arm.options})
        [plan, *others] = self._plan(request.runs.model_copy(update={"arms": arms}))
        if others:
            raise click.UsageError("--replay repeats one run; specify one task, agent and seed.")
        for name in ("task", "agent"):
            before, now = getattr(source, name), getattr(plan, name)
            if before != now:
                raise click.UsageError(f"Run {source.id} used {name} {before}, not {now}; specify {before}.")
        if plan.network != "gateway":
            raise click.UsageError(f"Agent {plan.agent} does not call models through the gateway; omit --replay.")
        [arm] = request.runs.arms.values()
        limits = {name: getattr(plan.limits, name) for name in arm.limits.model_dump(exclude_none=True)}
        same = {
            "seed": plan.seed if "seeds" in request.runs.model_fields_set else source.seed,
            "context": plan.context or source.context,
            "options": source.options | plan.options,
            "limits": source.limits.model_copy(update=limits),
            "obfuscated": source.obfuscated or plan.obfuscated,
            "replay": source.id,
        }
        return [plan.model_copy(update=same)]

    def _applicable(self, runs: Request, data: DataStore, plans: list[RunPlan]) -> list[RunPlan]:
        """Return the plans except technique tasks in a set that do not apply; print these tasks with the reasons."""
        from mleredux._core.stages.prepare import prepare
        from mleredux.models.request import SET

        refused: dict[str, str] = {}
        sets = [name.removeprefix(SET) for name in runs.tasks if "@" in name and name.startswith(SET)]
        for name in self._catalogue.task_names((), sets, refused):
            with contextlib.suppress(DataError, TaskBroken):  # the run reports it
                try:
                    prepare(self._catalogue.task(name), self._catalogue, data)
                except NotApplicable as error:
                    refused[name] = error.message
        for name, reason in refused.items():
            echo(f"{name}: skipped. {reason}", err=True)
        kept = [plan for plan in plans if plan.task not in refused or plan.task in runs.tasks]
        if not kept:
            raise NotApplicable("None of these tasks applies.", hint="Choose another task.")
        return kept

    def _have_data(self, request: RunRequest, data: DataStore, plans: list[RunPlan]) -> None:
        """Check that each task's data is available before the first run is created; prepare data that the user
        provided."""
        from mleredux._core.stages.prepare import prepare

        tasks = [self._catalogue.task(name) for name in dict.fromkeys(plan.task for plan in plans)]
        if request.source is not None:
            if len(tasks) > 1:
                raise click.UsageError("--from is the raw data of one task; specify exactly one task.")
            prepare(tasks[0], self._catalogue, data, source=request.source)
        for task in tasks:
            data.check_raw(task)

    def _not_isolated(self, plans: list[RunPlan], request: Request) -> Iterator[str]:
        """Yield a sentence about each agent that runs without isolation because no isolated sandbox works."""
        from mleredux._core.planning.plans import fallback_reason

        if any(arm.sandbox is not None for arm in request.arms.values()):
            return
        for agent, sandbox in dict.fromkeys((plan.agent, plan.sandbox) for plan in plans):
            if problem := fallback_reason(self._catalogue, agent, sandbox):
                yield f"{problem} {short_reference(agent)} runs in sandbox {sandbox}, without isolation."

    def runs(self, filters: Mapping[str, Any], limit: int) -> RunPage:
        """Return rows of the store's index."""
        wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in filters.items() if value}
        rows = [row for row in self.store.rows() if all(row[name] in values for name, values in wanted.items())]
        return RunPage(rows[:limit], f"{len(rows) - limit} more" if len(rows) > limit else None)

    def find(self, name: str) -> str:
        """Return the id of a run, or its path if it is stored in another folder."""
        folder = self.store.locate(name)
        return folder.name if folder.parent.resolve() == self.store.path.resolve() else str(folder)

    def view(self, run_id: str) -> RunView:
        """Return the current state of a run."""
        return _view(self.store.get(run_id))

    def events(self, run_id: str) -> list[Event]:
        """Return the event log of a run."""
        return self.store.get(run_id).events()

    def log(self, run_id: str, *, build: bool, follow: bool) -> Iterator[bytes]:
        """Yield the content of a log file, read while it grows."""
        run = self.store.get(run_id)
        path = run.logs_dir / "build.log" if build else run.agent_log
        if not path.exists() and not (follow and run.alive):
            raise NotFound(f"Run {run.id} has no {path.name}.", hint=f"Its state is {run.state}.")
        yield from growing(path, lambda: not (follow and run.alive), time.sleep)

    def artifacts(self, run_id: str) -> tuple[list[Record], list[Record]]:
        """Return the entries of the run's manifest."""
        run = self.store.get(run_id)
        manifest = run.manifest
        if manifest is None:
            raise NotFound(f"Run {run.id} has no manifest yet.", hint=f"Its state is {run.state}.")
        artifacts = [artifact.model_dump(mode="json") for artifact in manifest.artifacts]
        return artifacts, [dict(item) for item in manifest.left_out]

    def download(self, run_id: str, artifacts: list[Record], folder: Path) -> None:
        """Copy artifacts of a run."""
        from mleredux._core.submissions.files import open_regular
        from mleredux.models.paths import path_of

        run = self.store.get(run_id)
        for path in (artifact["path"] for artifact in artifacts):
            name = os.fsdecode(path_of(path) or path)
            target = folder / name
            with file_errors(MlereduxError, f"Artifact {path} can't be copied to {target}"):
                target.parent.mkdir(parents=True, exist_ok=True)
                with open_regular(run.path / name) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)

    def location(self, run_id: str) -> str:
        """Return the folder of a run."""
        return str(self.store.get(run_id).path)

    def cancel(self, runs: tuple[str, ...], experiment: str | None) -> Iterator[str]:
        """Ask the processes that execute the runs to stop."""
        for run in [self.store.get(name) for name in runs]:
            if run.state.final:
                yield f"{run.id} is already {run.state}."
            elif run.alive:
                run.ask_to_cancel()
                yield f"Asked {run.id} to stop."
            else:
                yield f"{run.id} is not being executed; `mleredux run --resume` continues it, `runs delete` deletes it."

    def experiment(self, name: str, action: str | None = None, body: Mapping[str, Any] | None = None) -> Record:
        """Return None, because experiments on this machine are folders."""
        raise NotFound(f"There is no experiment {name} on a server.", hint="Specify a server with --server URL.")

    def check(self, request: RunRequest) -> Record:
        """Return None: plans of this machine are checked by their plugin."""
        raise NotFound("Checking a plan requires a server.", hint="Specify a server with --server URL.")

    def delete(self, run_id: str) -> None:
        """Delete the folder of a run, and its data in an object store."""
        from mleredux._core.executors import open_nodes
        from mleredux._core.store.files import FileLock
        from mleredux._core.store.run import read_ticket

        folder = self.store.locate(run_id)
        try:
            if read_ticket(folder).get("store") and not FileLock(folder / ".lock").held_elsewhere():
                open_nodes(self._catalogue).delete(folder)
        except StoreError as error:
            hint = f"Nothing was deleted: try again when it responds, or delete the folder {folder} yourself."
            raise StoreError(error.message, hint=hint) from error
        self.store.delete(folder)

    def explain(self, error: Exception) -> None:
        """Return None: errors of this backend are already mleredux's own."""


class _LocalBatch(Batch):
    """Runs and the pipeline that executes them."""

    runs: list[Run]

    def __init__(self, runs: list[Run], pipeline: Any, note: str = "") -> None:
        super().__init__(runs, [run.record() for run in runs], note=note)
        self.pipeline = pipeline


def _view(run: Run) -> RunView:
    from mleredux._core.store.run import INTERRUPTED
    from mleredux.models.events import Warned

    events, page = run.events(), run.path / "report.html"
    status, message = run.status, run.message
    if status == INTERRUPTED:
        message = f"Its process was killed; `mleredux run --resume {run.id[-6:]}` continues it."
    return RunView(
        task=run.spec.task,
        agent=run.spec.agent,
        status=status,
        report=run.report,
        message=message,
        seconds=(events[-1].time - (run.log.state.began or events[0].time)).total_seconds() if events else 0.0,
        artifacts=_short(run.path),
        record=run.record(),
        waiting_for=run.log.state.waiting_for,
        page=_short(page) if page.exists() else None,
        warnings=tuple(payload.sentence for event in events if isinstance(payload := event.payload, Warned)),
    )


def _short(path: Path) -> str:
    with contextlib.suppress(ValueError, FileNotFoundError):  # different drives, or the current folder is deleted
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path.resolve())


def _copy_log(run: Run, progress: Progress, several: bool) -> None:
    """Print the content of a log as it grows."""
    for block in growing(run.agent_log, progress.stop.is_set, progress.stop.wait):
        write_log(block, f"{run.spec.task} | " if several else "")
