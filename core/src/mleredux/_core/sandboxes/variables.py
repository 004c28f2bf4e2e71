"""The variables of the caller that agents get, those whose values are masked, and those that no agent gets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mleredux.models.grants import Grants

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux.models import Agent, RunSpec

_OURS = "MLEREDUX_"


def is_foreign(agent: Agent) -> bool:
    """Whether an agent was found by a reference, so that it has only what is granted."""
    return agent.reference is not None


def protected_variables(catalogue: Catalogue) -> frozenset[str]:
    """Variables that no agent gets: those of mleredux itself, and the keys of the gateway's upstreams."""
    named = {name for names in catalogue.hook("mleredux_protected_variables")() for name in names or ()}
    return frozenset(named | {name for name in os.environ if name.startswith(_OURS)})


def is_protected(name: str, protected: Iterable[str]) -> bool:
    """Whether no agent gets the variable of a name."""
    return name.startswith(_OURS) or name in protected


def passed_variables(
    agent: Agent, grants: Grants, environment: Mapping[str, str], protected: Iterable[str]
) -> dict[str, str]:
    """The variables of the caller that an agent gets. The value of a protected one is not passed by another name.

    That holds for the value in the process's environment, too, where a lent secret takes its place.
    """
    declared = () if is_foreign(agent) else (*agent.pass_env, *agent.secrets)
    hidden = {known[name] for known in (os.environ, environment) for name in protected if known.get(name)}
    return {
        name: environment[name]
        for name in (*declared, *grants.variables)
        if name in environment and not is_protected(name, protected) and environment[name] not in hidden
    }


def secret_variables(spec: RunSpec, catalogue: Catalogue) -> tuple[str, ...]:
    """The variables whose values are masked in all that a run leaves: granted ones, and those that its agent declares.

    An agent that was found by a reference has none but granted ones, and need not be fetched.

    Raises:
        MlereduxError: The agent is not installed any more.
    """
    declared = catalogue.agent(spec.agent, spec.options).secrets if ":" not in spec.agent else ()
    return (*declared, *spec.grants.variables)
