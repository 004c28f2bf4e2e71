"""Third stage: run the agent in its sandbox."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mleredux._core import forkserver
from mleredux._core.data.datastore import Prepared
from mleredux._core.loans import caller_variables
from mleredux._core.masks import Mask
from mleredux._core.protocols import Built, Egress, Gateway, HostFilter, Launch, Sandbox, Session
from mleredux._core.sandboxes.supervise import Watch, supervise
from mleredux._core.sandboxes.timeline import TIMELINE_FILE, Timeline
from mleredux._core.sandboxes.tools import digests, find_tools, write_tools
from mleredux._core.sandboxes.variables import callers_proxies, passed_variables, protected_variables, secret_values
from mleredux._core.sandboxes.volume import RunDisk, find_disk, open_disk
from mleredux._core.stages.briefing import environment, write_briefing
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.dev_scores import DevScores
from mleredux._core.stages.failures import failure_line
from mleredux._core.stages.ledger import check_data, note_data
from mleredux._core.store import Run
from mleredux._core.store.sparse import move_contents, move_file
from mleredux._core.submissions.endpoint import ValidationEndpoint, share_of
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.snapshots import Snapshots
from mleredux.errors import Cancelled, ResumeRefused, SandboxError
from mleredux.models import Agent, Attempts, Cause, Outcome, Submitted
from mleredux.models.events import AgentFound, Attempt, DiskOpened, GatewayUse, NetworkUse, Validation, Warned
from mleredux.models.paths import readable
from mleredux.models.task import known_answers

GATEWAY_SOCKET = "gateway.sock"
_NAMED = 20
_SIGNAL_SECONDS = 1.0
_RECLAIMING = (signal.SIGTERM, signal.SIGKILL)  # as engines that reclaim a machine kill agents
_OUTPUT_FOLDERS = ("code", "logs", "rollout")


def run_agent(context: StageContext, built: Built, prepared: Prepared | None = None) -> tuple[Outcome, Submitted]:
    """Run the agent.

    Args:
        context: The run.
        built: The agent's environment.
        prepared: The data to use; None: the task's own.

    Returns:
        How the agent ended, and the submission to grade or the problem that was found in its place.

    Raises:
        Cancelled: A user cancelled the run while it waited for a slot.
        SandboxError: The environment broke.
    """
    run, task = context.run, context.task
    prepared = prepared or context.data.find(task)
    if prepared is None:
        raise SandboxError(f"The prepared data of {task.id} no longer exists.", hint="Start the run again.")
    holders = ", ".join(slot.run for slot in context.slots.held())
    context.say(f"waiting for a free slot{f' (in use by {holders})' if holders else ''}")
    with context.slots.hold(run.id, run.spec.limits, context.cancelled) as slot:
        if slot is None:
            raise Cancelled
        forkserver.warm(tables=forkserver.reads_tables(task))
        attempts = run.log.state.attempts
        if not attempts.unfinished and attempts.started:
            _set_aside(run.path, run.output_dir, run.agent_log)
        disk = open_disk(run.path, run.spec.limits.disk_mb, going_on=attempts.unfinished)
        gateway: Gateway | None = None
        endpoint: ValidationEndpoint | None = None
        egress: Egress | None = None

        def paused() -> float:
            return gateway.paused() - run.log.state.attempts.paused_before if gateway is not None else 0.0

        try:
            snapshots = Snapshots(run, task.submission.file)
            endpoint = ValidationEndpoint(
                run.id,
                read_schema(prepared.schema),
                run.output_dir,
                lambda verdict: run.emit(Validation(**verdict.model_dump())),
                lambda: max(0.0, agent_started(run) + run.spec.limits.time_limit + paused() - time.time()),
                disk.uploads,
                disk.note_refused,
                share_of(run.spec.limits) - run.log.state.validation_seconds,
                DevScores(context, prepared.private) if run.spec.limits.dev_scores and task.inner else None,
            )
            endpoint.start()
            if not context.sandbox.capabilities.isolated:
                note_data(run, prepared.public.parent, going_on=attempts.unfinished)
            # the data folder's path would reveal an obfuscated task
            data = disk.show(prepared.public) if run.spec.obfuscated else prepared.public
            run.emit(DiskOpened(limit_mb=run.spec.limits.disk_mb, enforced_by=disk.enforced_by, named=data is None))
            gateway = _open_gateway(context, endpoint)
            if (egress := _egress(context, endpoint)) is not None:
                egress.start()
            launch = _launch(context, built, data or prepared.public, endpoint, slot.gpus, gateway, disk, egress)
            stops = run.spec.limits.on_budget == "stop"
            spent = (lambda: run.log.state.spent) if stops else (lambda: None)
            session = Session(attempts, run.emit, context.cancelled, snapshots.update, spent, paused)
            context.say("running the agent")
            outcome = context.catalogue.hook("mleredux_run_agent")(
                launch=launch, session=session, sandbox=context.sandbox
            )
            outcome = _with_line(context, outcome)
            disk.empty_scratch()  # make room for the last version
            submitted = snapshots.finish()
        finally:
            if gateway is not None:
                run.emit(GatewayUse(status="closed", use=gateway.close()))
            if egress is not None:
                egress.stop()
            if endpoint is not None:
                endpoint.stop()
            for path in disk.close()[:_NAMED]:
                run.emit(Warned(path=readable(os.fsencode(path)), message="This file could not be saved."))
    if not context.sandbox.capabilities.isolated:
        check_data(run, prepared.public.parent)
    return outcome, submitted


def _with_line(context: StageContext, outcome: Outcome) -> Outcome:
    """Return the outcome of a failed command, with the line of its log that shows the reason."""
    if outcome.cause is not Cause.AGENT_CRASHED or outcome.limit is not None or not outcome.message:
        return outcome
    secrets = secret_values(context.run.spec, context.catalogue) | context.secrets
    line = failure_line(context.run.agent_log, Mask(secrets))
    return outcome.model_copy(update={"message": f"{outcome.message.partition(';')[0]}: {line}"}) if line else outcome


def run_in_sandbox(launch: Launch, session: Session, sandbox: Sandbox) -> Outcome:
    """Start the agent's command, or find it again, and supervise it: the built-in `mleredux_run_agent`.

    Args:
        launch: The input of `Sandbox.start`.
        session: Earlier attempts of the run, and callbacks.
        sandbox: The sandbox of the run.

    Raises:
        SandboxError: The environment broke.
    """
    before = session.attempts
    handle = sandbox.attach(launch)
    if before.outcome is not None:
        # The agent ended, and the program was then killed before it recorded the stage.
        if handle is not None:
            handle.close()
        return before.outcome
    if handle is not None and not before.unfinished:
        handle.close()  # the remains of an abandoned attempt, whose files were set aside
        handle = None
    if handle and (ended := handle.poll()) and ended.signal in _RECLAIMING and not ended.out_of_memory:
        handle.close()
        handle = None
        session.emit(Attempt(status="interrupted"))
    adopted, begun, paused = handle is not None, time.monotonic(), before.paused_before + session.paused()
    if handle is None:
        if before.unfinished:  # killed between the start and its record: an unknown agent may be running
            for _ in sandbox.sweep(launch.owner, lambda other: other != launch.run_id):
                continue
        _clear(launch, aside=before.started)
        session.emit(Attempt(status="starting"))
        begun = time.monotonic()
        handle = sandbox.start(launch)
    session.emit(
        AgentFound(
            status="adopted" if adopted else "started",
            sandbox=sandbox.id,
            handle=handle.id,
            agent=launch.agent.id,
            started_at=handle.started_at,
            monotonic=time.monotonic(),
            paused_before=paused,
        )
    )
    logs, disk = launch.log.parent, find_disk(launch.control_dir.parent)
    watch = Watch(
        folders=disk.counted,
        disk=disk,
        notice=launch.task_dir / "notice.txt",
        emit=session.emit,
        cancelled=session.cancelled,
        snapshot=session.look,
        spent=session.spent,
        paused=session.paused,
        measure=Timeline(logs / TIMELINE_FILE, launch.limits.time_limit, launch.gpu_ids).record,
    )
    try:
        # The wall clock may have been changed: a new agent is at most as old as the request to start it.
        age = _age(before) if adopted else min(max(0.0, time.time() - handle.started_at), time.monotonic() - begun)
        outcome = supervise(handle, launch.limits, watch, age)
        if outcome.cause is Cause.AGENT_CRASHED and outcome.signal == signal.SIGTERM:
            time.sleep(_SIGNAL_SECONDS)  # an engine that reclaims the machine also sends this process a signal
        if outcome.cause is not Cause.CANCELLED:
            session.emit(Attempt(status="ended", outcome=outcome))
        return outcome
    except SystemExit:  # raised by a SIGTERM handler: the agent is restarted elsewhere, with its full time
        session.emit(Attempt(status="interrupted"))
        raise
    finally:
        handle.close()


def _open_gateway(context: StageContext, endpoint: ValidationEndpoint) -> Gateway | None:
    """Open the run's gateway to language models if its network is `gateway`.

    Raises:
        SandboxError: No plugin provides a gateway.
    """
    if context.run.spec.network != "gateway":
        return None
    socket = endpoint.folder / GATEWAY_SOCKET
    socket.unlink(missing_ok=True)
    gateway: Gateway | None = context.catalogue.hook("mleredux_open_gateway")(
        run=context.run, agent=context.agent, socket=socket
    )
    if gateway is None:
        raise SandboxError("No gateway to language models is installed.", hint="`pip install mleredux-gateway`.")
    context.secrets |= set(gateway.secrets)
    return gateway


def _egress(context: StageContext, endpoint: ValidationEndpoint) -> Egress | None:
    """Return the run's proxy to its allowed hosts, if the sandbox offers no other way to reach them."""
    run = context.run
    hosts, is_open = run.spec.grants.hosts, run.spec.network == "open"
    if not (hosts or is_open) or "hosts" not in context.sandbox.capabilities.networks:
        return None
    from mleredux._core.sandboxes.egress import ANY, SOCKET

    assert isinstance(context.sandbox, HostFilter), "sandboxes with the network `hosts` open proxies"
    named = (*hosts, ANY) if is_open else hosts
    return context.sandbox.open_egress(endpoint.folder / SOCKET, named, lambda use: run.emit(NetworkUse(use=use)))


def _launch(
    context: StageContext,
    built: Built,
    public: Path,
    endpoint: ValidationEndpoint,
    gpus: tuple[str, ...],
    gateway: Gateway | None,
    disk: RunDisk,
    egress: Egress | None,
) -> Launch:
    run, agent = context.run, context.agent
    launch = replace(
        make_launch(run, agent, public, endpoint, disk, built=built, owner=context.owner),
        gpu_ids=gpus,
        gateway_socket=endpoint.folder / GATEWAY_SOCKET if gateway else None,
        gateway_url=gateway.url if gateway else "",
        proxy_socket=egress.path if egress else None,
        known_answers=known_answers(context.task),
        bound=context.bound,
    )
    layout = context.sandbox.layout(launch)
    tools = find_tools(context.catalogue, run.spec.grants.tools)
    _check_same(run, digests(tools))
    write_briefing(run, context.task, layout, launch.task_dir, context.sandbox.capabilities, tools)
    passed: dict[str, str] = {}
    if agent.pass_env or agent.secrets or run.spec.grants.variables:
        passed = passed_variables(agent, run.spec.grants, caller_variables(), protected_variables(context.catalogue))
    variables = environment(run, context.task, agent, launch, layout, passed)
    variables |= write_tools(agent, tools, launch.task_dir, layout.task)
    if egress:
        from mleredux._core.sandboxes.egress import variables as proxy_variables

        variables = {**proxy_variables(local=True), **variables}
    elif run.spec.network == "open":
        variables = {**callers_proxies(), **variables}
    if gateway:
        variables |= {**gateway.environment(layout.gateway_url), "MLEREDUX_GATEWAY_URL": layout.gateway_url}
    return replace(launch, env=variables)


def make_launch(
    run: Run, agent: Agent, public: Path, endpoint: ValidationEndpoint, disk: RunDisk, **more: Any
) -> Launch:
    """Return the launch of a run's agent without environment variables, and create its folders.

    Args:
        public: The task's public files.
        more: Other fields of the launch.
    """
    task, control, output = (run.path.resolve() / name for name in ("task", ".control", "output"))
    for folder in (task, control, disk.scratch):
        folder.mkdir(exist_ok=True)
    return Launch(
        run_id=run.id,
        agent=agent,
        command=agent.command,
        limits=run.spec.limits,
        network=run.spec.network,
        task_dir=task,
        data_dir=public.resolve(),
        output_dir=output,
        scratch_dir=disk.scratch.resolve(),
        control_dir=control,
        staging_dir=disk.staging.resolve(),
        log=run.agent_log.resolve(),
        validate_socket=endpoint.socket,
        validate_url=endpoint.url,
        **more,
    )


def _check_same(run: Run, hashes: dict[str, str]) -> None:
    """Record the tools of a run, which must stay the same when it is resumed.

    Raises:
        ResumeRefused: The tools have changed.
    """
    before = run.use.tools
    if changed := sorted(name for name in before if hashes.get(name) != before[name]):
        raise ResumeRefused(f"The tool {changed[0]} has changed since the run began.", hint="Start a new run.")
    if hashes:
        run.record_use(tools=hashes)


def _clear(launch: Launch, *, aside: bool) -> None:
    """Clear the folders for a fresh start; files of an interrupted attempt are kept if `aside`."""
    if aside:
        _set_aside(launch.control_dir.parent, launch.output_dir, launch.log)
    (launch.task_dir / "notice.txt").unlink(missing_ok=True)
    for name in _OUTPUT_FOLDERS:
        (launch.output_dir / name).mkdir(exist_ok=True)
    launch.log.touch()


def _set_aside(path: Path, output: Path, log: Path) -> None:
    """Move the files of an interrupted attempt into a separate folder."""
    if not (any(output.iterdir()) or (log.exists() and log.stat().st_size)):
        return
    attempts = path / "attempts"
    kept = attempts / str(sum(1 for _ in attempts.glob("*")) + 1)
    (kept / "output").mkdir(parents=True)
    move_contents(output, kept / "output")
    for left in (log, log.with_name(TIMELINE_FILE)):
        if left.exists():
            move_file(left, kept / left.name)


def _age(attempts: Attempts) -> float | None:
    """Return the seconds since the start of an adopted agent by the monotonic clock; None if unknown."""
    begun, now = attempts.monotonic, time.monotonic()
    return now - begun if begun is not None and begun <= now else None


def agent_started(run: Run) -> float:
    """Return the start time of the agent, in Unix time."""
    started = run.log.state.agent_started
    return time.time() if started is None else started
