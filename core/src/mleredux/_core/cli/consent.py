"""Requests of an agent that is not installed: the options that grant them, and the prompt before its first run."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mleredux._core.cli.output import echo
from mleredux._core.locations import cache_dir
from mleredux.errors import MlereduxError

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux.models import Agent, Grants

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS: dict[str, str] = json.loads(Path(__file__).with_name("grant_options.json").read_text(encoding="utf-8"))
"""The help text of each option, by its name, its parameter and its value."""
OPTIONS = tuple(names.split()[1] for names in _OPTIONS)
"""Parameters of `grant_options`."""


def grant_options(command: _Command) -> _Command:
    """Add the options that grant a foreign agent's requests; on a server, within the administrator's limits."""
    for names, text in reversed(_OPTIONS.items()):
        option, parameter, metavar = names.split()
        facts: dict[str, Any] = {"multiple": True, "metavar": metavar, "help": text, "callback": _checked}
        command = click.option(option, parameter, **facts)(command)
    return command


def _checked(_ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        if values:
            granted(**{str(param.name): values})
    except MlereduxError as error:
        raise click.BadParameter(error.message) from None
    return values


def granted(
    pass_env: Sequence[str] = (),
    allow_hosts: Sequence[str] = (),
    allow_images: Sequence[str] = (),
    allow_llm_fields: Sequence[str] = (),
    allow_llm_models: Sequence[str] = (),
    tools: Sequence[str] = (),
) -> Grants:
    """Return the grants given by the options.

    Raises:
        MlereduxError: A name is not valid.
    """
    from mleredux._core.planning.grants import read_grants

    build = "build:"
    return read_grants(
        variables=pass_env,
        hosts=[host for host in allow_hosts if not host.startswith(build)],
        build_hosts=[host.removeprefix(build) for host in allow_hosts if host.startswith(build)],
        images=allow_images,
        llm_fields=allow_llm_fields,
        llm_models=allow_llm_models,
        tools=tools,
    )


def consent(
    catalogue: Catalogue, agent: Agent, grants: Grants, network: str | None, *, shown: bool = False
) -> tuple[Grants, str | None]:
    """Show a foreign agent's requests before its first run, and ask the user to grant those that no option grants.

    An answer is remembered for the same commit (or content) with the same requests.

    Args:
        catalogue: The installed plugins.
        agent: The agent.
        grants: The grants given by options.
        network: The network mode given by an option.
        shown: Whether the caller has printed its `statement`.

    Returns:
        The grants and the network mode to run it with; without a terminal, they are unchanged.
    """
    from mleredux._core.planning.grants import missing_grants, requests_of, with_all
    from mleredux._core.sandboxes.variables import is_foreign, protected_variables
    from mleredux.models import Grants

    brings_code = agent.build.context or agent.build.image
    asks = agent.network != "none" or requests_of(agent) != Grants()
    if not is_foreign(agent) or not (brings_code or asks):
        return grants, network
    protected = protected_variables(catalogue)
    missing = missing_grants(agent, grants, network, protected)
    note = _note(agent)
    known = note.read_text(encoding="utf-8") if note.is_file() else None
    own = agent.unisolated == "first" and agent.network == "none"
    if not shown and ((known is None and not own) or (missing and known != "granted")):
        for line in statement(agent, protected):
            echo(line, err=True)
    if missing and known != "granted":
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return grants, network  # checking the plan reports the missing options
        click.confirm("Grant all of this?", abort=True, err=True)
        known = "granted"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(known or "shown", encoding="utf-8")
    if not missing:
        return grants, network
    return with_all(agent, grants, protected), network or agent.network


def statement(agent: Agent, protected: frozenset[str]) -> list[str]:
    """Return lines that describe an agent and its requests.

    Args:
        agent: The agent, configured with its options.
        protected: Variables that no agent may get.
    """
    from mleredux._core.planning.grants import requests_of

    requests = requests_of(agent)
    network = {
        "none": "none",
        "gateway": "the gateway to language models, at your cost",
        "open": "an open network: any public host",
    }
    return [
        f"Agent {agent.id} from {agent.reference} requests:",
        f"  network   {network[agent.network]}",
        *(f"  variable  {name}{_variable_note(name, protected)}" for name in requests.variables),
        *(f"  host      {name}, while it runs" for name in requests.hosts),
        *(f"  host      {name}, in its build" for name in requests.build_hosts),
        *(f"  image     {name}, in its build" for name in requests.images),
    ]


def _variable_note(name: str, protected: frozenset[str]) -> str:
    import os

    if name in protected:
        return ": never passed on; with network gateway, it gets a separate key from the gateway"
    return "" if name in os.environ else " (not set)"


def _note(agent: Agent) -> Any:
    from mleredux._core.planning.grants import requests_of

    facts = [agent.reference, agent.id, agent.network, requests_of(agent).model_dump()]
    return cache_dir() / "grants" / hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
