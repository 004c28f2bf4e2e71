"""Plugin with agents `mlebench:…`, imported agents, and the command that imports them."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2
mleredux_dynamic = ("agents",)

SCHEME = "mlebench:"


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agents that the user imported."""
    from mleredux_agent_mlebench_import.registry import imported

    return [Ref(f"{SCHEME}{name}", None, dict(record["summary"])) for name, record in imported().items()]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command, which is imported on use."""
    return [
        Ref(
            "agent import-mlebench",
            "mleredux_agent_mlebench_import.command:command",
            {"title": "Import agents from a folder in MLE-bench's layout."},
        )
    ]


@hookimpl
def mleredux_register_schemes() -> Iterable[Ref]:
    """Return the scheme of imported agents and of agents of a folder: `mlebench:aide/dev`, `mlebench:PATH#aide/dev`."""
    return [Ref("mlebench", "mleredux_agent_mlebench_import.registry:SCHEME")]
