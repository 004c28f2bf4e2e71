"""The smoke run: a short run on a small task that an agent must pass before its first real run."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from mleredux.errors import AgentBroken, Cancelled
from mleredux.models import Agent, Cause, Smoke
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.experiment import Request, plan
from mleredux.plugin.files import FileLock, cache_dir, write_atomically
from mleredux.plugin.host import Pipeline, StageContext
from mleredux.plugin.sandbox import Built

_LAST_LINES = 10
_LAST_BYTES = 10_000


def smoke_run(context: StageContext, built: Built, pipeline: Pipeline) -> None:
    """Run the agent on its smoke task, one run at a time, unless it has already passed in this environment.

    The stage that builds agents calls it, as the entry point `smoke_run` of the group `mleredux.api`.

    The agent passes if it creates a submission that can be scored, even if it reaches the time limit. The logs are kept
    in the run's `logs/smoke`. The run's budgets for language models apply to it separately; its calls do not count as
    those of the run.

    Raises:
        AgentBroken: The agent did not pass; the message gives the reason and the last lines of its log.
        Cancelled: A user cancelled the run.
    """
    if context.agent.smoke is None or (passed := _record(context.agent, built.identity)).exists():
        return
    passed.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(passed.with_suffix(".lock")):  # of several runs, only the first one needs to execute it
        if not passed.exists():
            _pass(context, context.agent.smoke, pipeline)
            note_passed(context.agent, built.identity)


def _pass(context: StageContext, smoke: Smoke, pipeline: Pipeline) -> None:
    context.say(f"smoke run on {smoke.task}")
    with context.inner_store(".smoke") as store:
        run = _execute(context, smoke, pipeline, store)
        shutil.copytree(run.logs_dir, context.run.logs_dir / "smoke", dirs_exist_ok=True)
        if run.cause is Cause.CANCELLED:
            raise Cancelled
        report = run.report
        if report is None or not report.valid_submission:
            raise AgentBroken(_why(run), hint="Its full logs are in the run's `logs/smoke`.")


def note_passed(agent: Agent, environment: str) -> None:
    """Record that this version of an agent passed its smoke run in this environment."""
    passed = _record(agent, environment)
    passed.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(passed, f"{agent.reference or agent.id}\n")


def _record(agent: Agent, environment: str) -> Path:
    """Return the file that records that this agent passed, keyed by its environment, its version and its command."""
    facts = agent.model_dump_json(include={"id", "version", "command", "env", "options", "network", "hosts", "smoke"})
    digest = hashlib.sha256(f"{environment}\0{facts}".encode()).hexdigest()
    return cache_dir() / "smoke" / digest[:32]


def _execute(context: StageContext, smoke: Smoke, pipeline: Pipeline, store: RunStore) -> Run:
    spec = context.run.spec
    budgets = spec.limits.model_dump(include={"llm_calls", "llm_tokens", "llm_cost_usd"}, exclude_none=True)
    request = Request.single(
        smoke.task,
        spec.agent,
        sandbox=spec.sandbox,
        limits={**budgets, "time_limit": min(smoke.time_limit, spec.limits.time_limit)},
        options={**spec.options, **smoke.options},
        network=spec.network,
        grants=spec.grants,
    )
    [planned] = plan(request, context.catalogue, own_machine=not context.sandbox.capabilities.isolated)
    run = store.create(planned, context.data.path, context.run.id)
    inner = type(pipeline)(
        store,
        context.catalogue,
        context.data,
        base_image=context.base_image,
        progress=lambda _run, message: context.progress(f"smoke run on {smoke.task}: {message}"),
        smoke=False,
        tracked=False,
        cancelled=context.cancelled,
    )
    inner.execute_run(run)
    return run


def _why(run: Run) -> str:
    report = run.report
    reason = run.message or (report.message if report else None) or "it produced nothing that can be scored"
    summary = f"The agent did not pass its smoke run on {run.spec.task}: {reason.rstrip('.')}."
    lines = last_lines(run)
    return "\n".join([f"{summary} The last lines of its log:", *lines, ""]) if lines else summary


def last_lines(run: Run) -> list[str]:
    """Return the last lines of the agent's log; none if there is no log."""
    if not run.agent_log.is_file():
        return []
    with run.agent_log.open("rb") as log:
        log.seek(max(0, run.agent_log.stat().st_size - _LAST_BYTES))
        return log.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
