"""What the package registers: the command `conformance`, and the agent `oracle`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Outcome
    from mleredux.plugin.sandbox import Launch

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`mleredux conformance`."""
    title = "Check that an installed package of plugins follows the contract."
    return [
        Ref("conformance", "mleredux_testing.conformance:command", {"title": title, "section": "Set up and extend"})
    ]


@hookimpl
def mleredux_register_agents() -> list[Ref]:
    """The agent, imported when it is used."""
    return [Ref("oracle", "mleredux_testing.answers:oracle")]


@hookimpl
def mleredux_run_agent(launch: Launch) -> Outcome | None:
    """Submit the answers for the agent `oracle`; None for all others."""
    if not launch.agent.oracle:
        return None
    from mleredux_testing.answers import submit_answers

    return submit_answers(launch)
