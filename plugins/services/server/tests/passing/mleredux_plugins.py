"""An agent for tests of faults that pass: while the file of the fault exists, its runs fail for that reason."""

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
    "disk": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "engine": SandboxError("The engine does not respond."),
    "store": StoreError("The object store does not respond."),
}
CODE = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"'


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """One agent for each fault."""
    limits = Limits(time_limit=120, cpus=0.5, memory_mb=256)
    return [Agent(id=f"no-{name}", title="Fails", command=("sh", "-c", CODE), limits=limits) for name in FAULTS]


@hookimpl(tryfirst=True)
def mleredux_run_agent(launch: Any, session: Any, sandbox: Any) -> None:
    """Fail while the fault lasts."""
    name = launch.agent.id.removeprefix("no-")
    if name in FAULTS and (Path(os.environ["FAULTS"]) / name).exists():
        raise FAULTS[name]
