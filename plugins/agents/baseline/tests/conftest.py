"""Running the agent as the sandbox does: a process, with the variables of the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Small models of the tests' own process fit in one thread, as the agent's do: more wait for one another."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@dataclass
class AgentProcess:
    """A started baseline.

    Attributes:
        output: Its output folder.
    """

    process: subprocess.Popen[str]
    output: Path
    log: list[str] = field(default_factory=list)

    def finish(self, timeout: float = 400) -> int:
        """Wait until it has ended; the exit code."""
        text, _ = self.process.communicate(timeout=timeout)
        self.log += text.splitlines()
        return self.process.returncode

    @property
    def submission(self) -> Path:
        return self.output / "submission.csv"

    @property
    def rollout(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.output / "rollout" / "trajectory.json").read_text(encoding="utf-8"))
        return found


Starter = Callable[..., AgentProcess]


@pytest.fixture
def start_baseline(tmp_path: Path) -> Any:
    """`start_baseline(data, facts, time_limit=…, **variables)` starts the agent."""
    started: list[subprocess.Popen[str]] = []

    def start(
        data: Path, facts: dict[str, Any], *, description: str = "", time_limit: float = 300, **variables: str
    ) -> AgentProcess:
        task, output, scratch = (tmp_path / name for name in ("task", "output", "scratch"))
        for folder in (task, output, scratch):
            folder.mkdir(exist_ok=True)
        (task / "task.json").write_text(json.dumps(facts), encoding="utf-8")
        (task / "description.md").write_text(description, encoding="utf-8")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "MLEREDUX_TASK": "a-task",
            "MLEREDUX_AGENT": "baseline",
            "MLEREDUX_SEED": "0",
            "MLEREDUX_TIME_LIMIT": str(time_limit),
            "MLEREDUX_DEADLINE": str(time.time() + time_limit),
            "MLEREDUX_TASK_DIR": str(task),
            "MLEREDUX_DATA_DIR": str(data),
            "MLEREDUX_OUTPUT_DIR": str(output),
            "MLEREDUX_SUBMISSION": str(output / "submission.csv"),
            "MLEREDUX_SCRATCH_DIR": str(scratch),
            "MLEREDUX_CPUS": "2",
            "MLEREDUX_MEMORY_MB": "4096",
            "MLEREDUX_OPTIONS": "{}",
            **{name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ},
            **variables,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "mleredux_agent_baseline"],
            cwd=output, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        return AgentProcess(process, output)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
