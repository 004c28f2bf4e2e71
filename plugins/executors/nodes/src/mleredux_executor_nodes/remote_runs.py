"""Submission of runs to an executor, and monitoring until they end."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Callable, Collection, Sequence

from mleredux.errors import ExecutorError, NotFound, StoreError, may_pass
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Cause, Run, State
from mleredux.plugin.executor import Executor, JobSpec, JobStatus
from mleredux.plugin.host import Pipeline, read_ticket, write_ticket

from mleredux_executor_nodes.followed_run import FollowedRun
from mleredux_executor_nodes.lease import LEASE_SECONDS, LONGEST_INTERVAL, calm_seconds, read_lease, revoke_lease
from mleredux_executor_nodes.objects import open_store
from mleredux_executor_nodes.replica import Replica
from mleredux_executor_nodes.shelf import Shelf

NODE_PROGRAM = "mleredux_executor_nodes.node"
"""The module that executes a run on its node."""
_POLL_SECONDS = 0.5
_PULL_SECONDS = 1.0
_LONGEST_WAIT = 2.0
"""Maximum seconds between two reads of the files of a run whose job still waits: only this program notices if it is
cancelled."""
_PAUSE_SECONDS = 5.0
"""Seconds until a run is resubmitted to an executor that refused it or did not respond."""
_REFUSED_SECONDS = 3600.0
"""Seconds after which mleredux gives up on an executor that keeps refusing a run, or does not respond."""
_MOST_JOBS = 3
"""Maximum number of successive jobs of a run that may end without finishing a stage before the run is given up."""
_CANCEL_SECONDS = 20.0
_SILENT_SECONDS = 2 * LEASE_SECONDS
"""Twice the server's value, because a shared file system shows changes late."""
_START_SECONDS = 300.0
"""Seconds until a job with a node has started its command; engines may report it as running before that."""
_OVERHEAD_SECONDS = 4 * 3600.0
"""Seconds for everything except the agent."""


class RemoteRuns:
    """Runs of a pipeline on its executor.

    Args:
        pipeline: The pipeline; cancelling it cancels the runs.
        executor: The executor of the runs.
        program: Returns the module that executes a run on its node, as `NODE_PROGRAM` does.

    Raises:
        StoreError: The pipeline's object store can't be opened.

    Attributes:
        open: Unfinished runs by id.
    """

    def __init__(
        self, pipeline: Pipeline, executor: Executor, program: Callable[[Run], str] = lambda _run: NODE_PROGRAM
    ) -> None:
        self._pipeline, self._executor, self._program = pipeline, executor, program
        self.open: dict[str, FollowedRun] = {}
        self._objects = open_store(pipeline.catalogue, pipeline.object_store) if pipeline.object_store else None
        self._shelf = Shelf(self._objects, pipeline.data) if self._objects is not None else None

    def execute(self, runs: Sequence[Run]) -> None:
        """Execute runs to their end; those with a live job from an earlier call are followed.

        Raises:
            ExecutorError: The executor refused the runs, or has no node that is large enough for one of them.
        """
        try:
            left, again, patient_until = list(runs), 0.0, time.monotonic() + _REFUSED_SECONDS
            while left or self.open:
                if self._pipeline.stopping():
                    left = [run for run in left if not _cancel(run)]
                if left and time.monotonic() >= again:
                    left = self._submit_all(left, patient_until)
                    again = time.monotonic() + _PAUSE_SECONDS
                self.step()
                time.sleep(_POLL_SECONDS)
        except KeyboardInterrupt:
            self._pipeline.cancel()
            for run in runs:
                if run.id not in self.open and not run.state.final:
                    _cancel(run)
            self.execute([])

    def _submit_all(self, runs: list[Run], patient_until: float) -> list[Run]:
        """Submit runs to the executor; return, in another order, those that the object store did not accept now.

        Refused runs are marked as failed before the error is raised. A run that the store permanently refuses, for
        example because there is no such bucket, fails alone.
        """
        left: list[Run] = []
        parts, end = [runs], time.monotonic() + _PAUSE_SECONDS
        while parts:
            some = parts.pop()
            try:
                self._add(some, checked=True)
            except ExecutorError as error:
                if not isinstance(error, StoreError) or time.monotonic() > patient_until:
                    for run in [*some, *left, *(run for part in parts for run in part)]:
                        if run.state == "queued" and run.id not in self.open:
                            run.give_up(Cause.ENVIRONMENT_BROKE, error.message)
                    raise
                if len(some) > 1 and time.monotonic() < end:  # a single run may be at fault
                    parts += [some[: len(some) // 2], some[len(some) // 2 :]]
                    continue
                if len(some) == 1 and not may_pass(error.message):
                    some.pop().give_up(Cause.ENVIRONMENT_BROKE, error.message)
                left += some
                for run in some:
                    self._pipeline.progress(run, f"queued (waiting: {error.message})")
        return left

    def add(self, runs: Sequence[Run]) -> None:
        """Submit runs to the executor; earlier submissions are followed, even while it does not respond.

        Raises:
            ExecutorError: The executor refused the new runs, or does not respond.
        """
        self._add(runs)

    def _add(self, runs: Sequence[Run], *, checked: bool = False) -> None:
        wanted = [run for run in runs if not run.state.final]
        self.open |= {run.id: followed_run for run in wanted if (followed_run := self._recovered(run))}
        fresh = [run for run in wanted if run.id not in self.open]
        if checked:
            self._check_sizes(fresh)
        self.open |= dict(zip((run.id for run in fresh), self._submit(fresh), strict=True))

    def step(self) -> list[Run]:
        """Check all runs once; return those that have ended.

        The executor reports on all jobs together. The files of a run are read when its job's status changes, and
        otherwise less and less often while the run is quiet.
        """
        statuses, now, ended = self._poll(self.open.values()), time.monotonic(), []
        for followed_run in list(self.open.values()):
            status = statuses.get(followed_run.job)
            if now < followed_run.due and status == followed_run.status and not self._pipeline.stopping():
                continue
            if self._follow(followed_run, status):
                ended.append(followed_run.run)
            followed_run.status, followed_run.due = status, now
            if status is not None and status.state != "ended" and followed_run.cancelled is None:
                longest = _LONGEST_WAIT if status.state == "waiting" else LONGEST_INTERVAL
                followed_run.due += calm_seconds(now - followed_run.moved, longest)
        for run in ended:
            if (replica := self.open.pop(run.id).replica) is not None:
                with contextlib.suppress(StoreError, NotFound):  # the objects are deleted with the run
                    replica.sweep()
        return ended

    def _check_sizes(self, runs: Sequence[Run]) -> None:
        """Refuse a run that would wait forever."""
        nodes = self._executor.nodes() if runs else ()
        for limits in {run.spec.limits.model_dump_json(): run.spec.limits for run in runs}.values():
            wanted = (limits.cpus, limits.memory_mb, limits.gpus)
            if nodes and not any(
                all(a <= b for a, b in zip(wanted, (node.cpus, node.memory_mb, node.gpus), strict=True))
                for node in nodes
            ):
                raise ExecutorError(
                    f"No node of {self._executor.id} has {plain(limits.cpus)} CPUs, {limits.memory_mb} MB of memory "
                    f"and {limits.gpus} GPUs.",
                    hint="Request less with --cpus, --memory or --gpus.",
                )

    def _poll(self, followed: Collection[FollowedRun]) -> dict[str, JobStatus]:
        try:
            return dict(self._executor.poll([followed_run.job for followed_run in followed]))
        except ExecutorError as error:  # an engine that is being restarted: jobs continue meanwhile
            for followed_run in followed:
                followed_run.problem = error.message
            return {}

    def _recovered(self, run: Run) -> FollowedRun | None:
        """Return a run whose job was submitted by an earlier process; if the job has ended, `step` submits another
        one."""
        ticket = read_ticket(run.path)
        if ticket.get("executor") != self._executor.id or not (job := ticket.get("job")):
            return None
        return FollowedRun(run, self._spec(run, ticket["nonce"]), job, self._replica(run))

    def _replica(self, run: Run) -> Replica | None:
        return Replica(self._objects, run.id, run.path) if self._objects is not None else None

    def _spec(self, run: Run, nonce: str) -> JobSpec:
        place = (str(run.path),) if self._objects is None else (self._objects.url, run.id)
        command = (sys.executable, "-m", self._program(run), *place, nonce)
        limits, shared = run.spec.limits, self._objects is None
        seconds = limits.time_limit + limits.grace + _OVERHEAD_SECONDS
        return JobSpec(run.id, run.path, command, limits, seconds, shared)

    def _submit(self, runs: Sequence[Run]) -> list[FollowedRun]:
        if not runs:
            return []
        pipeline, specs = self._pipeline, []
        common = {
            "executor": self._executor.id,
            "allocates": self._executor.allocates,
            "load": [str(item) for item in pipeline.catalogue.load],
            "block": [str(item) for item in pipeline.catalogue.block],
            "base_image": pipeline.base_image,
            "smoke": pipeline.smoke,
            "store": self._objects.url if self._objects is not None else None,
        }
        replicas = [self._replica(run) for run in runs]
        for run, replica in zip(runs, replicas, strict=True):
            nonce = secrets.token_hex(8)
            write_ticket(run.path, {**common, "nonce": nonce, "job": None})  # first: an older job then does nothing
            if replica is not None and self._shelf is not None:
                if run.state is State.CANCELLED:
                    run.forget_cancel()
                data = self._shelf.publish(pipeline.catalogue.task(run.spec.task))
                replica.offer({**common, "nonce": nonce, "data": data})
            specs.append(self._spec(run, nonce))
        jobs = self._executor.submit(specs)
        followed = [FollowedRun(*parts) for parts in zip(runs, specs, jobs, replicas, strict=True)]
        for followed_run in followed:
            write_ticket(followed_run.run.path, {**common, "nonce": followed_run.nonce, "job": followed_run.job})
        return followed

    def _follow(self, followed_run: FollowedRun, status: JobStatus | None) -> bool:
        """Check a run; return whether it has ended."""
        run, now = followed_run.run, time.monotonic()
        with contextlib.suppress(ExecutorError):  # ask again later
            self._executor.fetch(followed_run.spec)
        try:
            self._pull(followed_run, status, now)
        except StoreError as error:  # until the executor responds, nothing is known about the run, and nothing is lost
            followed_run.changed, followed_run.problem = now, error.message
            self._show(followed_run, f"{run.state} ({error.message})")
            if self._pipeline.stopping() or run.cancel_asked:
                with contextlib.suppress(ExecutorError):
                    self._executor.cancel(followed_run.job)
            return False
        state = run.state
        if state.final and not run.alive:
            if status is not None and status.state == "waiting":
                self._stop(followed_run)  # it was cancelled in the queue
            self._show(followed_run, str(state))
            return True
        if self._cancelled(followed_run, status, now):
            return True
        if status is None:
            return False
        if status.state == "ended":
            return self._ended(followed_run, status)
        shown = str(state) if status.state == "running" else "queued"
        lease, silent = read_lease(run.path), now - followed_run.changed
        if lease != followed_run.lease or status.state == "waiting":
            followed_run.lease, followed_run.changed, followed_run.started = lease, now, status.state != "waiting"
            followed_run.problem = run.log.state.waiting_for
        elif silent > (_SILENT_SECONDS if followed_run.started else _START_SECONDS):
            self._stop(followed_run)  # once this job has ended, the run continues with another one
        elif silent > LEASE_SECONDS:
            followed_run.problem = self._silent_node()
        detail = f"waiting for {followed_run.problem}" if followed_run.problem else status.detail or status.state
        self._show(followed_run, f"{shown} ({self._executor.id}: {detail})")
        return False

    def _silent_node(self) -> str:
        """Return what a run waits for if its node writes nothing."""
        where = self._objects.url if self._objects is not None else "the runs directory"
        return f"its node, which writes nothing to {where} and may be unable to reach it"

    def _pull(self, followed_run: FollowedRun, status: JobStatus | None, now: float) -> None:
        ended = status is not None and status.state == "ended"
        if followed_run.replica is not None and (ended or now - followed_run.pulled >= _PULL_SECONDS):
            followed_run.replica.pull()
            followed_run.pulled = now

    def _fence(self, followed_run: FollowedRun) -> None:
        """Reject further writes by a job."""
        if followed_run.replica is not None:
            followed_run.replica.fence()
        revoke_lease(followed_run.run.path)

    def _cancelled(self, followed_run: FollowedRun, status: JobStatus | None, now: float) -> bool:
        """End a run that was cancelled and does not end on its own; return whether it has ended."""
        run = followed_run.run
        if followed_run.cancelled is None:
            if not (self._pipeline.stopping() or run.cancel_asked):
                return False
            run.ask_to_cancel()
            followed_run.cancelled = now
        if (status is None or status.state == "running") and now - followed_run.cancelled < _CANCEL_SECONDS:
            return False
        self._stop(followed_run)
        if not _cancel(run):
            return False
        self._close(followed_run)
        self._show(followed_run, str(run.state))
        return True

    def _ended(self, followed_run: FollowedRun, status: JobStatus) -> bool:
        """Submit another job for a run whose job ended without a result, or give up the run."""
        run = followed_run.run
        if run.state.final:
            return not run.alive
        finished = len(run.log.state.finished)
        if finished > followed_run.finished:
            followed_run.tries, followed_run.finished = 0, finished
        if followed_run.tries >= _MOST_JOBS:
            detail = f" The last one: {status.detail}." if status.detail else ""
            message = f"{_MOST_JOBS} jobs of {self._executor.id} in a row ended without making progress.{detail}"
            return self._give_up(followed_run, message)
        if not (followed_run.started or followed_run.refused):
            followed_run.problem = self._silent_node()
        if time.monotonic() < followed_run.again:
            return False
        try:
            self._executor.cancel(followed_run.job)  # an engine may hold back a job until an administrator releases it
            [fresh] = self._submit([run])
        except ExecutorError as error:
            followed_run.again, followed_run.problem = time.monotonic() + _PAUSE_SECONDS, error.message
            followed_run.refused = followed_run.refused or time.monotonic()
            if (seconds := time.monotonic() - followed_run.refused) > _REFUSED_SECONDS:
                reason = f"{self._executor.id} has rejected it for {seconds / 60:.0f} minutes: {error.message}"
                return self._give_up(followed_run, reason)
            self._show(followed_run, f"queued (waiting for {self._executor.id}: {error.message})")
            return False
        followed_run.spec, followed_run.job, followed_run.replica = fresh.spec, fresh.job, fresh.replica
        followed_run.lease, followed_run.started, followed_run.changed = read_lease(run.path), False, time.monotonic()
        if followed_run.refused:
            followed_run.problem = None
        followed_run.tries, followed_run.refused = followed_run.tries + 1, None
        return False

    def _stop(self, followed_run: FollowedRun) -> None:
        """Kill a job, and reject its further writes."""
        with contextlib.suppress(ExecutorError):
            self._executor.cancel(followed_run.job)
        self._fence(followed_run)
        followed_run.changed = time.monotonic()

    def _give_up(self, followed_run: FollowedRun, message: str) -> bool:
        """Mark a run as failed; return whether no job is executing it anymore."""
        self._fence(followed_run)
        if not followed_run.run.give_up(Cause.ENVIRONMENT_BROKE, message):
            return False
        self._close(followed_run)
        return True

    def _close(self, followed_run: FollowedRun) -> None:
        """Publish the end of a run that its node does not know about."""
        if followed_run.replica is not None:
            with contextlib.suppress(StoreError):
                followed_run.replica.close()

    def _show(self, followed_run: FollowedRun, message: str) -> None:
        if message != followed_run.shown:
            followed_run.shown, followed_run.moved = message, time.monotonic()
            self._pipeline.progress(followed_run.run, message)


def _cancel(run: Run) -> bool:
    """Mark a run as cancelled; return whether no job is executing it anymore."""
    run.ask_to_cancel()
    return run.give_up(Cause.CANCELLED, "A user cancelled the run.")
