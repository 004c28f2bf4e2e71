"""A trace reconstructed from data that every run has: its task, events, code and log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from mleredux.models.events import AgentEnded, AgentFound, LimitReached, Notice, Signal, Validation
from mleredux.models.formats import duration, plain
from mleredux.plugin.artifact import Cause, Event, Run, State, final_state
from mleredux.plugin.files import IntakeLimits, readable_path
from mleredux_rollout import (
    AgentInfo,
    FinalMetrics,
    Observation,
    ObservationResult,
    Step,
    StepExtra,
    ToolCall,
    Trajectory,
)

from mleredux_artifact_reports.files import Excerpt, excerpt, files_below, terminal_text, text_of


class Ending(NamedTuple):
    """The final state, its cause and a one-sentence message."""

    state: State
    cause: Cause | None
    message: str | None


def ending_of(run: Run) -> Ending:
    """Return the run's ending. Artifacts are created in the stage before it, when the final state is not yet set."""
    state = run.state
    if state.final:
        return Ending(state, run.cause, run.message)
    last, outcome = run.log.state.last_stage, run.outcome
    if last and last.status == "failed" and last.cause:
        cause, message = last.cause, last.message
    elif isinstance(last, AgentEnded) and last.status == "cancelled" and last.outcome:
        cause, message = Cause.CANCELLED, last.outcome.message
    elif outcome and outcome.cause:
        cause, message = outcome.cause, outcome.message
    elif state == State.PRODUCING:
        return Ending(State.DONE, None, None)
    else:
        return Ending(state, None, None)
    return Ending(final_state(cause), cause, message)


_TASK_BYTES = 256 << 10
_LOG_BYTES = 64 << 10
_PREVIEW_BYTES = 4 << 10
_PREVIEW_LINES = 6
_CODE_FILES = 50
_CODE_BYTES = 64 << 10
_VALIDATIONS = 200
_CODE_ENDINGS = (".py", ".ipynb", ".r", ".jl", ".sh", ".sql", ".yaml", ".yml", ".toml", ".json", ".md", ".txt")


@dataclass
class _Moment:
    """A step that is not numbered yet."""

    time: datetime
    source: Literal["system", "user", "agent"]
    message: str
    fields: dict[str, Any] = field(default_factory=dict)


def reconstruct(run: Run) -> Trajectory:
    """Build the trace of a run whose agent wrote none. It contains neither reasoning nor model calls."""
    events = run.events()
    moments = sorted(
        [*_from_events(run, events), *_from_code(run), *_from_submissions(run)], key=lambda moment: moment.time
    )
    moments = [_task(run, events), *moments, *_from_log(run, events), *_end(run, events)]
    return Trajectory(
        agent=AgentInfo(name=run.spec.agent, version=run.use.agent_version or "unknown"),
        steps=[
            Step(
                step_id=number,
                timestamp=moment.time.isoformat(),
                source=moment.source,
                message=moment.message,
                **moment.fields,
            )
            for number, moment in enumerate(moments, 1)
        ],
        final_metrics=FinalMetrics(total_steps=len(moments)),
    )


def _task(run: Run, events: list[Event]) -> _Moment:
    description = excerpt(run.path / "task", "description.md", head=_TASK_BYTES)
    words = text_of(description.head) + _left_out(description) if description else f"Solve the task {run.spec.task}."
    return _Moment(events[0].time if events else run.spec.created_at, "system", words)


def _from_events(run: Run, events: list[Event]) -> Iterator[_Moment]:
    validations = 0
    for event in events:
        happened = event.payload
        if isinstance(happened, AgentFound):
            limits = run.spec.limits
            words = (
                f"The agent was {happened.status} in the {run.spec.sandbox} sandbox with seed {run.spec.seed}, "
                f"{plain(limits.time_limit)} s, {plain(limits.cpus)} CPUs and {limits.memory_mb} MB."
            )
            yield _Moment(event.time, "system", words)
        elif isinstance(happened, Notice):
            words = f"The agent was notified that {plain(happened.seconds_left)} seconds were left."
            yield _Moment(event.time, "system", words)
        elif isinstance(happened, LimitReached):
            words = happened.message or f"The agent reached its {happened.limit} limit."
            yield _Moment(event.time, "system", words)
        elif isinstance(happened, Signal):
            yield _Moment(event.time, "system", f"The agent received {happened.signal}.")
        elif isinstance(happened, Validation) and validations < _VALIDATIONS:
            validations += 1
            call = ToolCall(tool_call_id=f"event-{event.seq}", function_name="validate_submission", arguments={})
            answer = ObservationResult(source_call_id=call.tool_call_id, content=happened.message)
            fields = {"tool_calls": [call], "observation": Observation(results=[answer])}
            yield _Moment(event.time, "agent", "Requested validation of the submission's format.", fields)


def _from_submissions(run: Run) -> Iterator[_Moment]:
    for version in run.submissions():
        name = version.path.relative_to(run.path).as_posix()
        fields: dict[str, Any] = {"extra": StepExtra(stage="submit", submission_version=version.number).as_extra()}
        preview = excerpt(run.path, name, head=_PREVIEW_BYTES)
        if preview is not None:
            lines = text_of(preview.head).splitlines()[:_PREVIEW_LINES]
            fields["observation"] = Observation(results=[ObservationResult(content="\n".join(lines))])
        words = f"Wrote version {version.number} of the submission ({version.size:,} bytes), stored as {name}."
        yield _Moment(version.time, "agent", words, fields)


def _from_code(run: Run) -> Iterator[_Moment]:
    """Yield code files with the time of their last modification, if they are small enough to be code."""
    shown = 0
    for code_file in files_below(run.path, "output/code", IntakeLimits(files=2_000, depth=8)):
        if code_file.reason is not None or not code_file.path.lower().endswith(tuple(map(str.encode, _CODE_ENDINGS))):
            continue
        if shown == _CODE_FILES:
            return
        file = excerpt(run.output_dir, b"code/" + code_file.path, head=_CODE_BYTES)
        if file is None:
            continue
        shown += 1
        name = f"output/code/{readable_path(code_file.path)}"
        time = datetime.fromtimestamp(max(0.0, min(file.modified, 4e9)), UTC)
        words = f"Wrote the code {name}:\n\n```\n{text_of(file.head)}{_left_out(file)}\n```"
        yield _Moment(time, "agent", words, {"extra": {"file": name}})


def _from_log(run: Run, events: list[Event]) -> Iterator[_Moment]:
    log = excerpt(run.logs_dir, "agent.log", head=_LOG_BYTES // 4, tail=_LOG_BYTES - _LOG_BYTES // 4)
    if log is None or not log.size:
        return
    words = terminal_text(log.head)
    if log.left_out:
        words += f"\n[… {log.left_out:,} bytes omitted …]\n{terminal_text(log.tail)}"
    fields = {"observation": Observation(results=[ObservationResult(content=words)])}
    yield _Moment(_agent_end(run, events), "agent", "Output of the agent.", fields)


def _end(run: Run, events: list[Event]) -> Iterator[_Moment]:
    ending, outcome = ending_of(run), run.outcome
    if not ending.state.final:
        return
    words = f"The run ended with state {ending.state}"
    if outcome:
        words += f", after {duration(outcome.seconds)} of agent run time"
        if outcome.paused_seconds:
            words += f", {duration(outcome.working_seconds)} of it while the model provider was available"
        words += f" (exit code {outcome.exit_code})" if outcome.exit_code is not None else ""
    words += f": {ending.message}" if ending.message else "."
    yield _Moment(events[-1].time if events else run.spec.created_at, "system", words)


def _agent_end(run: Run, events: list[Event]) -> datetime:
    ended = [event.time for event in events if isinstance(event.payload, AgentEnded)]
    return ended[-1] if ended else events[-1].time if events else run.spec.created_at


def _left_out(file: Excerpt) -> str:
    return f"\n[… {file.left_out:,} bytes omitted …]" if file.left_out else ""
