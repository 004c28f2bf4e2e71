"""The sandbox of a sample: an open session, in whose sandbox the solver's tools run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import anyio
from inspect_ai.util import (
    ExecResult,
    LimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from mleredux import MlereduxError
from mleredux_agents import OpenSession, open_session
from pydantic import BaseModel

Result = TypeVar("Result")


class Places(BaseModel, frozen=True):
    """The task and the location of a session, stored in the log for `inspect eval-retry`."""

    task: str
    sandbox: str | None = None
    time_limit: float | None = None
    runs_dir: str | None = None
    data_dir: str | None = None


@sandboxenv(name="mleredux")
class SessionSandbox(SandboxEnvironment):
    """A session as an Inspect sandbox. Paths of files and working directories are relative to the output folder."""

    def __init__(self, session: OpenSession) -> None:
        super().__init__()
        self.session = session

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Open the session of a sample, with the seed in its metadata."""
        if not isinstance(config, Places):
            raise MlereduxError("The mleredux sandbox only works with mleredux tasks.", hint="Use `mleredux/TASK`.")
        opened = functools.partial(
            open_session,
            config.task,
            "inspect",
            sandbox=config.sandbox,
            seed=int(metadata.get("seed", 0)),
            time_limit=config.time_limit,
            runs_dir=config.runs_dir,
            data_dir=config.data_dir,
        )
        # Use a thread outside the pool: it waits for resources that pool threads free by ending sessions.
        limiter = anyio.CapacityLimiter(1)
        session = await anyio.to_thread.run_sync(opened, abandon_on_cancel=True, limiter=limiter)
        return {"default": cls(session)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Cancel the run of a sample that was not scored."""
        for environment in environments.values():
            with anyio.CancelScope(shield=True):
                await _apart(environment.as_type(cls).session.close)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Return the configuration in a log."""
        return Places(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a program; return the last 10 MiB of each stream.

        Raises:
            TimeoutError: The program took too long.
            LimitExceededError: The session has ended.
        """
        if user is not None:
            raise SandboxUserUnsupportedError("Programs run as the sandbox's own user.")
        content = input.encode() if isinstance(input, str) else input or b""
        ended = await self._call(
            self.session.execute_program, cmd, content=content, cwd=cwd or "", env=env, timeout=timeout
        )
        if ended.code is None:
            raise TimeoutError(f"It took more than {timeout} s.")
        stdout, stderr = (stream.decode("utf-8", "replace") for stream in (ended.stdout, ended.stderr))
        return ExecResult(ended.code == 0, ended.code, stdout, stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file, and create its folders."""
        content = contents.encode() if isinstance(contents, str) else contents
        await self._call(self.session.write, file, content)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file of at most 100 MiB."""
        content = await self._call(self.session.read, file)
        return content.decode() if text else content

    async def _call(self, do: Callable[..., Result], *words: Any, **named: Any) -> Result:
        try:
            return await _apart(do, *words, **named)
        except MlereduxError as error:
            if self.session.open:
                raise
            limit = self.session.run.spec.limits.time_limit
            raise LimitExceededError("time", value=limit, limit=limit, message=str(error)) from None


async def _apart(do: Callable[..., Result], *words: Any, **named: Any) -> Result:
    """Call a blocking function in a thread."""
    return await anyio.to_thread.run_sync(functools.partial(do, *words, **named), abandon_on_cancel=True)
