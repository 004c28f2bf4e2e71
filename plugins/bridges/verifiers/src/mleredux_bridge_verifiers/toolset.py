"""The tools of a rollout, in a separate process that sends requests to the session of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import verifiers.v1 as vf
from mleredux import MlereduxError, Run
from mleredux_agents import Attached

from mleredux_bridge_verifiers.state import RunState

_CALLS = ThreadPoolExecutor(1024, thread_name_prefix="call")
"""Threads that wait for commands of all rollouts."""


class SandboxTools(vf.Toolset[vf.SharedToolsetConfig, RunState]):
    """Tools that run in the sandbox of the run. No tool reveals a score."""

    TOOL_PREFIX = None

    @vf.tool
    async def run_command(self, command: str, timeout_seconds: float = 600) -> str:
        """Run a shell command in the sandbox, in the output folder; return its output and exit code."""
        return await self._call(lambda session: session.execute(command, timeout=timeout_seconds).shown)

    @vf.tool
    async def run_python(self, code: str, timeout_seconds: float = 600) -> str:
        """Run code in a new Python interpreter, in the sandbox's output folder; return its output and exit code."""
        return await self._call(lambda session: session.execute(code, language="python", timeout=timeout_seconds).shown)

    @vf.tool
    async def validate(self) -> str:
        """Check whether the submission file in the output folder is well-formed; never reveals its score."""
        return await self._call(lambda session: session.validate().model_dump_json())

    @vf.tool
    async def time_left(self) -> str:
        """Return the seconds until the time limit, at which the submission file is graded as it is."""
        return await self._call(lambda session: str(session.time_left()))

    async def _call(self, ask: Callable[[Attached], str]) -> str:
        session = Attached(Run(Path(self.state.run)))
        try:
            return await asyncio.get_running_loop().run_in_executor(_CALLS, ask, session)
        except MlereduxError as error:
            return str(error)


if __name__ == "__main__":
    SandboxTools.run()
