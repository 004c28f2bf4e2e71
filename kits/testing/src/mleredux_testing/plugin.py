"""What the package registers: the command `conformance`, and the agent `oracle`."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

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
