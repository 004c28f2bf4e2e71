"""The pipeline's work in each stage of a run; each function returns the stage's result."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from mleredux._core.data.datastore import Prepared
from mleredux._core.data.installation import git_commit
from mleredux._core.protocols import BuildRequest, Built
from mleredux._core.resume import versions_of
from mleredux._core.sandboxes.task_images import build_in
from mleredux._core.sandboxes.tools import find_tools
from mleredux._core.sandboxes.variables import is_foreign
from mleredux._core.stages.context import StageContext, interruptible
from mleredux._core.stages.grade import grade
from mleredux._core.stages.grade_versions import grade_versions
from mleredux._core.stages.held_out import Search
from mleredux._core.stages.ledger import exposures, make_ledger, within_reach
from mleredux._core.stages.prepare import prepare
from mleredux._core.stages.run_agent import agent_started, run_agent
from mleredux.errors import AgentBroken, Cancelled, ResumeRefused, SandboxError, one_line
from mleredux.models import Evidence, HostUse, Outcome, Report, State, Verification, events
from mleredux.models.formats import counted


def _prepare(context: StageContext) -> events.StageEnded:
    context.say("preparing the data")
    context.slots.fit(context.run.spec.limits)
    if failed := [finding for finding in context.catalogue.network_findings(context.run.spec) if not finding.ok]:
        raise SandboxError(failed[0].message, hint=failed[0].remedy)
    with interruptible(context.cancelled):
        prepared = prepare(context.task, context.catalogue, context.data, progress=context.say)
    used = context.run.use.task_data
    if used is not None and used != prepared.digest:
        raise ResumeRefused(f"The prepared data of {context.task.id} has changed since the run began.")
    kernel = os.uname()
    context.run.record_use(
        task_version=context.task.version,
        task_data=prepared.digest,
        agent_version=context.agent.version,
        packages=versions_of(context.run, context.catalogue),
        python=platform.python_version(),
        git_commit=git_commit(),
        host=f"{kernel.sysname}-{kernel.release}-{kernel.machine}",
    )
    return events.PrepareEnded()


def _build(context: StageContext) -> events.StageEnded:
    context.say("building the agent's environment")
    _refuse_copies(context)
    built = _built(context)
    before = context.run.use.image
    if before is not None and before != built.identity:
        raise ResumeRefused(
            f"The environment of agent {context.agent.id} is now {built.identity}; the run began with {before}.",
            hint="Start a new run.",
        )
    context.run.record_use(image=built.identity)
    if context.smoke and context.agent.smoke is not None:
        context.smoke(built)
    return events.BuildEnded(image=built.identity, cached=built.cached)


def _refuse_copies(context: StageContext) -> None:
    """Refuse an agent whose own files, or those of its tools, contain held-out files of the task.

    Raises:
        AgentBroken: A file is such a copy, or an archive with one.
    """
    run, build = context.run, context.agent.build
    tools = find_tools(context.catalogue, run.spec.grants.tools)
    folders = {build.context, build.folder and build.folder.path, *(tool.folder for tool in tools)} - {None}
    if not folders or (prepared := context.data.find(context.task)) is None:
        return
    search = Search(prepared.private)
    for folder in folders:
        for name, private in search.within(cast("Path", folder)):
            raise AgentBroken(
                f"The agent's file {name} is identical to {private}, a held-out file of task {context.task.id}.",
                hint="Remove it from the agent's folder.",
            )
    for name, reason in search.not_searched.items():
        run.emit(events.Warned(path=name, message=f"This archive was not searched for held-out files: {reason}."))


def _built(context: StageContext) -> Built:
    log, limit = context.run.logs_dir / "build.log", context.agent.build.time_limit
    hosts = context.run.spec.grants.build_hosts if is_foreign(context.agent) else None
    record: Callable[[HostUse], object] = lambda use: context.run.emit(events.NetworkUse(use=use))  # noqa: E731
    request = BuildRequest(context.agent, log, context.say, context.base_image, limit, hosts, record, context.cancelled)
    return build_in(context.task, context.sandbox, request)


def _run_agent(context: StageContext) -> events.StageEnded:
    outcome, submitted = run_agent(context, _built(context))
    if isinstance(submitted, Path):
        return events.AgentEnded(outcome=outcome, submission=str(submitted.relative_to(context.run.path)))
    return events.AgentEnded(outcome=outcome, problem=submitted.problem)


def _grade(context: StageContext) -> events.StageEnded:
    context.say("grading")
    run, ran = context.run, context.run.log.state.ran or events.AgentEnded()
    prepared = prepare(context.task, context.catalogue, context.data, progress=context.say)
    isolated = context.sandbox.capabilities.isolated
    exposed = exposures(run, prepared.private, context.task.submission.file, isolated=isolated)
    report = grade(
        context.task,
        run.path / ran.submitted if isinstance(ran.submitted, Path) else ran.submitted,
        prepared.private,
        context.catalogue,
        shown_path=ran.submission,
        limit=(ran.outcome or Outcome()).limit,
        ledger=make_ledger(context, exposed),
        cancelled=context.cancelled,
    )
    versions = _grade_versions(context, report, prepared.private)
    judge(context, prepared, report, exposed, again=run.spec.verify)
    return events.GradeEnded(score=report.score, valid=report.valid_submission, versions=versions)


def judge(
    context: StageContext, prepared: Prepared, report: Report, exposed: Sequence[Evidence], *, again: bool
) -> None:
    """Collect evidence, re-execute the code if requested, and store the report with the verdict.

    Args:
        exposed: The result of `exposures`.
        again: Whether to execute the code again.
    """
    run, evidence = context.run, list(exposed)
    if "answers" in context.agent.needs:
        why = f"Agent {context.agent.id} submits the task's own answers."
        evidence.insert(0, Evidence(kind="oracle", level="seen", why=why))
    if not context.sandbox.capabilities.isolated:
        evidence.append(within_reach(context))
    for implementation in context.catalogue.hook("mleredux_find_evidence").get_hookimpls():
        arguments = {"run": run, "task": context.task, "report": report, "private": prepared.private}
        try:
            reasons = implementation.function(*(arguments[name] for name in implementation.argnames))
            evidence += cast("Iterable[Evidence] | None", reasons) or ()
        except Exception as error:  # a plugin may raise anything; the result is judged without its evidence
            message = f"Finding evidence failed: {one_line(error)}"
            run.emit(events.Warned(plugin=implementation.plugin_name, message=message))
    verdict = report.judged(tuple(evidence), report.verdict.verification)
    run.write_report(verdict)
    if again:
        built = _built(context)
        same = built.identity == run.use.image
        why = "The agent's environment has changed since the run began."
        result = _verify(context, built, prepared, report) if same else Verification(status="not attempted", why=why)
        run.write_report(verdict.judged(tuple(evidence), result))


def _verify(context: StageContext, built: Built, prepared: Prepared, report: Report) -> Verification:
    """Execute the run's final code again with a plugin; if that is impossible, the result states the reason.

    Raises:
        Cancelled: A user cancelled the run.
    """
    if not report.valid_submission or report.score is None:
        return Verification(status="not attempted", why="There is no submission with a score.")
    context.say("executing the final code again")
    try:
        with context.inner_store(".verify") as place:
            arguments = {"built": built, "prepared": prepared, "report": report, "folder": place.path}
            verification: Verification | None = context.catalogue.hook("mleredux_verify")(context=context, **arguments)
    except Cancelled:
        raise
    except Exception as error:  # the environment or the plugin failed; the grade remains valid
        return Verification(status="not attempted", why=f"The code could not be executed again: {one_line(error)}")
    why = "No installed plugin executes code again; `pip install mleredux-artifact-notes`."
    return verification or Verification(status="not attempted", why=why)


def _grade_versions(context: StageContext, report: Report, private: Path) -> int:
    """Write the scores over time; return the number of versions."""
    run, versions = context.run, context.run.submissions()
    if not versions:
        return 0
    context.say(f"grading {counted(len(versions), 'version')} of the submission")
    scores = grade_versions(
        context.task,
        versions,
        private,
        context.catalogue,
        started_at=agent_started(run),
        graded={path: report for path in [run.path / report.submission_path] if path.is_file()},
        cancelled=context.cancelled,
    )
    run.write_scores(scores)
    return len(scores)


STEPS: dict[State, Callable[[StageContext], events.StageEnded]] = {
    State.PREPARING: _prepare,
    State.BUILDING: _build,
    State.RUNNING: _run_agent,
    State.GRADING: _grade,
}
