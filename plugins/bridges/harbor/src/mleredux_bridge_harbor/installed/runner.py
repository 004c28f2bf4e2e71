"""Run one of Harbor's agents: `install` during the image build, `run` in the agent's container."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harbor.agents.factory import AgentFactory
from harbor.environments.base import ExecResult
from harbor.models.agent.context import AgentContext
from harbor.models.task.config import EnvironmentConfig, MCPServerConfig
from harbor.models.trial.config import AgentConfig

HERE = Path(__file__).parent
LOGS = Path("/logs/agent")
HOME = Path("/opt/harbor-home")


class LocalEnvironment:
    """Implements Harbor's environment with this container, in which a single user runs all commands."""

    default_user = None
    context_id = None
    session_id = environment_name = "mleredux"
    task_env_config = EnvironmentConfig()

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command with bash, and also print its output."""
        del user
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        kept = await asyncio.gather(
            _copy(process.stdout, sys.stdout.buffer),
            _copy(process.stderr, sys.stderr.buffer),
            asyncio.wait_for(process.wait(), timeout_sec),
        )
        return ExecResult(stdout=kept[0], stderr=kept[1], return_code=kept[2])

    async def upload_file(self, source_path: Path | str, target_path: Path | str) -> None:
        """Copy a file."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        if not Path(target_path).exists() or not Path(target_path).samefile(source_path):
            shutil.copy(source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: Path | str) -> None:
        """Copy a folder."""
        shutil.copytree(source_dir, target_dir, dirs_exist_ok=True)

    download_file, download_dir = upload_file, upload_dir

    @contextlib.contextmanager
    def scoped_exec_env(self, env: dict[str, str]) -> Iterator[None]:
        """Set variables temporarily."""
        before = dict(os.environ)
        os.environ.update(env)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


async def _copy(pipe: asyncio.StreamReader | None, to: Any) -> str:
    assert pipe is not None
    kept = b""
    while piece := await pipe.read(1 << 16):
        to.write(piece)
        to.flush()
        kept = (kept + piece)[-(1 << 20) :]
    return kept.decode(errors="replace")


def _servers() -> list[Any]:
    path = os.environ.get("MLEREDUX_MCP_FILE")
    named = json.loads(Path(path).read_bytes())["mcpServers"] if path else {}
    for server in named.values():
        if variables := server.pop("env", None):  # Harbor's servers do not have this
            assigned = [f"{name}={value}" for name, value in variables.items()]
            server.update(command="env", args=[*assigned, server["command"], *server["args"]])
    return [
        MCPServerConfig(name=name, transport="http" if "url" in server else "stdio", **server)
        for name, server in named.items()
    ]


def _agent(model: str) -> Any:
    choice = json.loads((HERE / "agent.json").read_bytes())
    config = AgentConfig(name=choice["name"], model_name=model or None, kwargs=choice["arguments"])
    more = {"mcp_servers": _servers(), "skills_dir": os.environ.get("MLEREDUX_SKILLS_DIR")}
    return AgentFactory.create_agent_from_config(config, logs_dir=LOGS, **{k: v for k, v in more.items() if v})


def main(what: str, model: str = "") -> None:
    """Install the agent, or run it with the prompt of this run.

    Raises:
        SystemExit: The agent failed; the message contains the reason.
    """
    if what == "run":
        subprocess.run(["cp", "-rs", f"{HOME}/.", os.environ["HOME"]], check=True)
    try:
        agent, environment = _agent(model), LocalEnvironment()
        if what == "install":
            asyncio.run(agent.setup(environment))
            return
        context = AgentContext()
        asyncio.run(agent.run(Path(os.environ["MLEREDUX_PROMPT_FILE"]).read_text(), environment, context))
        agent.populate_context_post_run(context)
    except Exception as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error


if __name__ == "__main__":
    main(*sys.argv[1:])
