"""Solvers: a model with tools in the sandbox, or a mleredux agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import mleredux
from inspect_ai.agent import AgentSubmit, as_solver, react
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_ai.solver import Generate, Solver, TaskState, chain, solver
from inspect_ai.tool import Tool, ToolCall, bash, python, tool
from inspect_ai.util import sandbox
from mleredux import Run
from mleredux_rollout import Step, text_of

from mleredux_bridge_inspect.sandbox import SessionSandbox

RUN = "mleredux_run"
"""Key of the run's folder in the store of a sample."""


@solver
def instructions() -> Solver:
    """Add the instructions that agents get: this sandbox's folders and limits, and the description of the task."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        session = sandbox().as_type(SessionSandbox).session
        state.user_prompt.text = session.instructions
        state.store.set(RUN, str(session.run.path))
        return state

    return solve


@tool
def validate() -> Tool:
    """Check the submission."""

    async def execute() -> str:
        """Check whether the submission file in the output folder is well-formed. Never reveals its score."""
        verdict = await anyio.to_thread.run_sync(sandbox().as_type(SessionSandbox).session.validate)
        return f"{'Valid' if verdict.valid else 'Not valid'}. {verdict.message}"

    return execute


@solver
def tools_in_sandbox(tool_timeout: int = 600) -> Solver:
    """Let a model call `bash`, `python` and `validate` in the sandbox until it calls `submit`.

    Args:
        tool_timeout: Seconds after which a call is killed.
    """
    description = "End the session. The current submission file is graded; the score is not shown."
    return chain(
        as_solver(
            react(
                tools=[bash(timeout=tool_timeout), python(timeout=tool_timeout), validate()],
                submit=AgentSubmit(name="submit", description=description),
            )
        )
    )


@solver
def run_agent(agent: str, task: str | None = None, options: dict[str, Any] | None = None, **places: Any) -> Solver:
    """Run an agent on the task instead of Inspect's model, with its own sandbox and limits.

    Args:
        agent: As in `mleredux.run`.
        task: Id of the task; None for the id in the sample's metadata.
        options: Options of the agent.
        places: Additional arguments of `mleredux.run`: `sandbox`, `time_limit`, `network`, `runs_dir`, `data_dir`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        def run() -> Run:
            seed = int(state.metadata.get("seed", 0))
            return mleredux.run(task or state.metadata["task"], agent, seed=seed, options=options, **places)

        ended = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
        state.store.set(RUN, str(ended.path))
        if ended.rollout is not None:
            state.messages = [message for step in ended.rollout.steps for message in _messages(step)]
        state.output.completion = ended.report.message or "" if ended.report else ended.message or ""
        state.completed = True
        return state

    return solve


def _messages(step: Step) -> Iterable[ChatMessage]:
    """Return the messages of a step of a rollout."""
    text = text_of(step.message)
    if step.source != "agent":
        yield (ChatMessageSystem if step.source == "system" else ChatMessageUser)(content=text)
        return
    calls = [
        ToolCall(id=call.tool_call_id, function=call.function_name, arguments=call.arguments)
        for call in step.tool_calls or ()
    ]
    yield ChatMessageAssistant(content=text, tool_calls=calls or None)
    for result in step.observation.results if step.observation else ():
        yield ChatMessageTool(content=text_of(result.content), tool_call_id=result.source_call_id)
