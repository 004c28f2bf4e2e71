"""`mleredux scripted-llm SCENARIO`, and `ScriptedLlm` for tests: a language model that follows a scenario file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux_scripted_llm.local import ScriptedLlm
    from mleredux_scripted_llm.scenario import Scenario, load_scenario

__all__ = ["Scenario", "ScriptedLlm", "load_scenario"]
mleredux_contract = 2

_WHERE = {"ScriptedLlm": "local", "Scenario": "scenario", "load_scenario": "scenario"}


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `scripted-llm`."""
    title = "Serve a scripted language model from a scenario file."
    yield Ref("scripted-llm", f"{__name__}.command:command", {"title": title, "section": "Set up and extend"})


def __getattr__(name: str) -> Any:
    """Load the public names on first access."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
