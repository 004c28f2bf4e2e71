"""A verifiers taskset with all tasks: `vf-eval mleredux-bridge-verifiers`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from mleredux import MlereduxError
from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2
__all__ = ["MlereduxTaskset"]  # verifiers uses the taskset named here


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent under whose name rollouts are listed."""
    return [Ref("verifiers", f"{__name__}.agent:agent")]


def __getattr__(name: str) -> Any:
    """Import the taskset on first use, because other commands do not need verifiers.

    Raises:
        AttributeError: The name does not exist.
        MlereduxError: verifiers is not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("verifiers.v1")
    except ModuleNotFoundError:
        problem = "This needs verifiers, which is not installed here."
        raise MlereduxError(problem, hint='Install it: `pip install "verifiers>=0.4,<0.5"`.') from None
    return getattr(import_module(f"{__name__}.taskset"), name)
