"""Export tasks to Harbor (`mleredux export-task TASK`), and run Harbor's task directories (`mleredux run harbor:PATH`).

| modules | contents |
|---|---|
| `command`, `directory` | `mleredux export-task`; a task as a task directory |
| `publish_command`, `publish` | `mleredux publish`; a set of tasks as a folder for publication |
| `contents`, `exposure` | its data and solution; the scan of files visible to agents |
| `grade`, `packages` | the grading script in exported tasks; the source packages that it needs |
| `imported` | Harbor task directories as tasks |
| `agent`, `installed_agent` | the oracle; Harbor's installed agents |
| `trial`, `reward` | a run: agent, then verifier; the verifier's reward as a submission, with its grader |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.models import Outcome
    from mleredux.plugin.agent import Launch, Session
    from mleredux.plugin.sandbox import Sandbox
    from mleredux.plugin.task import Task

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands `export-task` and `publish`."""
    title = "Write a task as a Harbor task directory."
    published = "Write a set of tasks for publication, without uploading it."
    return [
        Ref("export-task", f"{__name__}.command:command", {"title": title, "section": "Tasks"}),
        Ref("publish", f"{__name__}.publish_command:command", {"title": published, "section": "Tasks"}),
    ]


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the oracle, which runs a task's own solution, and Harbor's agents."""
    return [Ref("harbor-oracle", f"{__name__}.agent:agent"), Ref("harbor-agent", f"{__name__}.installed_agent:agent")]


@hookimpl
def mleredux_register_schemes() -> Iterable[Ref]:
    """Return the scheme of task directories: `harbor:PATH`."""
    return [Ref("harbor", f"{__name__}.imported:TASKS")]


@hookimpl
def mleredux_find_task(name: str, base: Task | None) -> Task | None:
    """Return an imported task."""
    if not name.startswith("harbor."):
        return None
    from mleredux_bridge_harbor.imported import read_task

    return read_task(name)


@hookimpl(tryfirst=True)
def mleredux_run_agent(launch: Launch, session: Session, sandbox: Sandbox) -> Outcome | None:
    """Run the agent in the task's image, then the verifier."""
    task = launch.env.get("MLEREDUX_TASK", "")
    if not task.startswith("harbor."):
        return None
    from mleredux_bridge_harbor.trial import run

    return run(launch, session, sandbox, task)
