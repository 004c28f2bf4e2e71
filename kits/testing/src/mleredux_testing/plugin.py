"""The package's registrations: the commands `conformance` and `new`, and the agent `oracle`."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return `mleredux conformance` and `mleredux new`."""
    section = {"section": "Set up and extend"}
    check = "Check that an installed package of plugins follows the contract."
    new = "Create a new plugin of any kind, as a complete package."
    return [
        Ref("conformance", "mleredux_testing.conformance:command", {"title": check, **section}),
        Ref(
            "new", "mleredux_testing.scaffolds.command:command", {"title": new, "place": "machine", "section": "Common"}
        ),
    ]


@hookimpl
def mleredux_register_agents() -> list[Ref]:
    """Return the agent, which is imported on use."""
    return [Ref("oracle", "mleredux_testing.answers:oracle")]
