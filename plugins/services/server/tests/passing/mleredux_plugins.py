"""An agent for tests of faults that pass: while a stage's file exists, it fails on each task for another reason."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError, StoreError
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Limits

mleredux_contract = 2
FAULTS: dict[str, Exception] = {
    "digits": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "wine": SandboxError("The engine does not respond."),
    "diabetes": StoreError("The object store does not respond."),
    "breast-cancer": SandboxError("The name of the registry can't be resolved."),
}
CODE = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"'


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """One agent for each task."""
    limits = Limits(time_limit=120, cpus=0.5, memory_mb=256)
    return [Agent(id=f"for-{task}", title="Fails", command=("sh", "-c", CODE), limits=limits) for task in FAULTS]


def fail(stage: str, task: str) -> None:
    """Fail while the fault lasts."""
    if task in FAULTS and (Path(os.environ["FAULTS"]) / stage).exists():
        raise FAULTS[task]


@hookimpl(tryfirst=True)
def mleredux_prepare(task: Any) -> None:
    """Fail while the data is prepared."""
    fail("preparing", task.id)


@hookimpl(tryfirst=True)
def mleredux_run_agent(launch: Any) -> None:
    """Fail before the agent starts."""
    fail("running", launch.agent.id.removeprefix("for-"))


@hookimpl(tryfirst=True)
def mleredux_grade(task: Any) -> None:
    """Fail while the submission is graded."""
    fail("grading", task.id)
