"""The built-in plugin: the process sandbox, and default implementations of the stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mleredux._core.plugins.discovery import Ref
from mleredux.hookspecs import hookimpl

if TYPE_CHECKING:
    from mleredux._core.protocols import Launch, Sandbox, Session
    from mleredux.models import Outcome, Score, Task


@hookimpl(trylast=True)
def mleredux_prepare(task: Task, raw: Path, public: Path, private: Path) -> bool | None:
    """Prepare with the function that the task declares."""
    if task.prepare is None:
        return None
    task.prepare(raw, public, private)
    return True


@hookimpl(trylast=True)
def mleredux_run_agent(launch: Launch, session: Session, sandbox: Sandbox) -> Outcome | None:
    """Run the agent's command in the sandbox, or its function outside."""
    if launch.agent.outside is not None:
        outcome: Outcome = launch.agent.outside(launch)
        return outcome
    from mleredux._core.stages.run_agent import run_in_sandbox

    return run_in_sandbox(launch, session, sandbox)


@hookimpl(trylast=True)
def mleredux_grade(task: Task, submission: Path, private: Path) -> Score | None:
    """Grade with the grader of the task's metric."""
    from mleredux._core.plugins import current
    from mleredux._core.stages.grade import grade_with_metric

    return grade_with_metric(task, submission, private, current())


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """Return the process sandbox."""
    return [Ref("process", "mleredux._core.sandboxes.process:SANDBOX")]
