"""The tools of a task: read it, work in its sandbox, validate, submit, and get the remaining time; never its score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mleredux import MlereduxError
from mleredux_agents import OpenSession


def make_server(session: OpenSession) -> MCPServer[Any]:
    """Return the server of one open session."""

    def read_task() -> str:
        """Return the instructions: folders, limits, the description of the task and the format of the submission."""
        return session.instructions

    def run_command(command: str, timeout_seconds: float = 600) -> str:
        """Run a shell command in the sandbox, in the output folder; return its output and exit code."""
        with _tool_errors(session):
            return session.execute(command, timeout=timeout_seconds).shown

    def run_python(code: str, timeout_seconds: float = 600) -> str:
        """Run code in a new Python interpreter, in the sandbox's output folder; return its output and exit code."""
        with _tool_errors(session):
            return session.execute(code, language="python", timeout=timeout_seconds).shown

    def validate() -> dict[str, Any]:
        """Check whether the submission file in the output folder is well-formed; never reveals its score."""
        with _tool_errors(session):
            return session.validate().model_dump()

    def submit() -> dict[str, Any]:
        """End the work. The submission file in the output folder is graded; the score is not shown."""
        with _tool_errors(session):
            verdict = session.submit()
        session.finish()
        return verdict.model_dump()

    def time_left() -> dict[str, float]:
        """Return the seconds until the time limit, at which the submission file is graded as it is."""
        return {"seconds": session.time_left()}

    server: MCPServer[Any] = MCPServer("mleredux", instructions="Call read_task first. Submit before the time limit.")
    tools: tuple[Callable[..., Any], ...] = (read_task, run_command, run_python, validate, submit, time_left)
    for tool in tools:
        server.tool()(tool)
    return server


@contextmanager
def _tool_errors(session: OpenSession) -> Iterator[None]:
    """Convert errors to messages for the client; after the time limit, include the outcome of its work."""
    try:
        yield
    except MlereduxError as error:
        if session.open:
            raise ToolError(str(error)) from None
        session.finish()
        raise ToolError(session.ending) from None
