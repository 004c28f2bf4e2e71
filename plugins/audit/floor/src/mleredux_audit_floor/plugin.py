"""`mleredux audit floor TASK`: score trivial agents that learn nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mleredux.plugin.agent import Agent
    from mleredux.plugin.page import Panel

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands `audit floor` and `certify`."""
    yield Ref("audit floor", "mleredux_audit_floor.command:command", {"title": "Score trivial submissions."})
    title = "Certify generated tasks, or check certificates."
    yield Ref("certify", "mleredux_audit_floor.certify_command:command", {"title": title, "section": "Tasks"})


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """Return an agent that only searches for the answers."""
    from mleredux.plugin.agent import Agent, Build, Limits

    yield Agent(
        id="hunter",
        title="Looks for the answers on the machine, and submits what it finds",
        command=("python", "-m", "mleredux_audit_floor.hunter"),
        build=Build(packages=("mleredux_audit_floor", "mleredux_agentkit")),
        limits=Limits(time_limit=300, cpus=1, memory_mb=1024),
        tags=("no-llm", "adversarial"),
    )


@hookimpl
def mleredux_register_pages() -> list[Panel]:
    """Return the panel that shows the floor on the page of a task."""
    from mleredux.plugin.page import Panel

    return [Panel(title="Floor", template="floor.html.j2", function="mleredux_audit_floor.panel:panel", place="task")]
