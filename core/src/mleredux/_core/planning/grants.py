"""Check an agent's access, in one place for the command line, the Python API and services.

An agent that was found by a reference (`repo:…`) is foreign code, so its declarations are only requests. An installed
agent gets everything that it declares.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import ValidationError

from mleredux._core.loans import caller_variables
from mleredux._core.plugins.capabilities import all_of
from mleredux._core.sandboxes.egress import Rule
from mleredux._core.sandboxes.tools import is_path
from mleredux._core.sandboxes.variables import is_foreign, is_protected
from mleredux.errors import MlereduxError, NotGranted
from mleredux.models.agent import Grants
from mleredux.models.base import first_problem

if TYPE_CHECKING:
    from mleredux.models import Agent
    from mleredux.models.agent import Tool

_SEARCHING = re.compile(
    r"(?i)(^|[/:@._-])(online|sonar|perplexity|search|deep-?research|compound|preset|auto)([/:@._-]|$)"
)
"""Names of models that search the web on their own, or that are aliases of other models."""
_WILDCARDS = frozenset("*?[")


def requests_of(agent: Agent) -> Grants:
    """Return the access that an agent requests in its declaration, without its network mode."""
    variables = tuple(dict.fromkeys((*agent.pass_env, *agent.secrets)))
    build = agent.build
    return Grants(variables=variables, hosts=agent.hosts, build_hosts=build.hosts, images=build.images)


def check_grants(
    agent: Agent, grants: Grants, network: str | None, protected: Iterable[str], *, installed: Agent | None = None
) -> None:
    """Check that everything an agent requests was granted.

    Args:
        agent: The agent with its options applied.
        grants: The grants of the agent.
        network: The granted network mode; None if none was specified.
        protected: The result of `protected_variables`.
        installed: The agent without options, whose own declarations need no grant.

    Raises:
        NotGranted: Something was not granted or can't be granted. The message names it, and the hint names the options.
    """
    if impossible := sorted(name for name in grants.variables if is_protected(name, protected)):
        raise NotGranted(
            f"{', '.join(impossible)} can't be passed to any agent: reserved for the gateway or mleredux itself.",
            hint="Use `--network gateway`, which gives agents a metered key for one run.",
        )
    if missing := missing_grants(agent, grants, network, protected, installed=installed):
        raise NotGranted(
            f"Agent {agent.id} ({agent.reference or 'installed'}) requests {all_of(missing.values())}, "
            "which was not granted.",
            hint=f"Grant it with `{' '.join(missing)}`; in a plan, with the arm's `network` and `grants`.",
        )


def check_variables(agent: Agent, names: Iterable[str], protected: Iterable[str]) -> None:
    """Check that the caller's environment has the variables of an agent, except protected ones, which it never gets.

    Raises:
        MlereduxError: Some variables are not set; the message names them.
    """
    unknown = {*names} - {*agent.env, *caller_variables()}
    if lacking := sorted(name for name in unknown if not is_protected(name, protected)):
        message = f"Agent {agent.id} needs variables that are not set: {', '.join(lacking)}."
        raise MlereduxError(message, hint=f"Set them, e.g. `export {lacking[0]}=…`.")


def check_tools(agent: Agent, tools: Iterable[Tool], grants: Grants, network: str) -> None:
    """Check that an agent can use its tools.

    Raises:
        MlereduxError: The agent can't use a tool, or the host of an MCP server was not granted.
    """
    for tool in tools:
        if tool.kind not in agent.tools:
            words = {"mcp": "an MCP server", "skill": "a skill"}[tool.kind]
            raise MlereduxError(
                f"Agent {agent.id} can't use {tool.id}: it does not support {words}.",
                hint="Choose an agent that declares `tools`, such as `--agent command`.",
            )
        if tool.url is None or network == "open":
            continue
        parts = urlsplit(tool.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if not any(Rule.read(granted).allows(parts.hostname or "", port) for granted in grants.hosts):
            host = f"{parts.hostname}" if port in (80, 443) else f"{parts.hostname}:{port}"
            raise NotGranted(f"{tool.id} uses {host}, which was not granted.", hint=f"Add `--allow-host {host}`.")


def missing_grants(
    agent: Agent, grants: Grants, network: str | None, protected: Iterable[str], *, installed: Agent | None = None
) -> dict[str, str]:
    """Return an agent's requests without a grant, in words, by the option that grants them."""
    trusted = installed or (None if is_foreign(agent) else agent)
    requests, has = requests_of(agent), requests_of(trusted) if trusted else Grants()
    missing: dict[str, str] = {}
    for name in requests.variables:
        if name not in (*has.variables, *grants.variables) and not is_protected(name, protected):
            missing[f"--pass-env {name}"] = f"the variable {name}"
    if network is None:
        if agent.network == "open" and not trusted:
            missing["--network open"] = "an open network"
        for name in requests.hosts:
            if not _covers((*has.hosts, *grants.hosts), name):
                missing[f"--allow-host {name}"] = f"the host {name}"
    for name in requests.build_hosts:
        if not _covers((*has.build_hosts, *grants.build_hosts), name):
            missing[f"--allow-host build:{name}"] = f"the host {name} in its build"
    for name in requests.images:
        if name not in has.images and not any(fnmatchcase(name, pattern) for pattern in grants.images):
            missing[f"--allow-image {name}"] = f"the image {name}"
    return missing


def with_all(agent: Agent, grants: Grants, protected: Iterable[str]) -> Grants:
    """Return the grants extended by everything else that an agent requests, except protected variables."""
    both = merge_grants(grants, requests_of(agent))
    variables = tuple(name for name in both.variables if not is_protected(name, protected))
    return both.model_copy(update={"variables": variables})


def limit_grants(wanted: Grants, allowed: Grants) -> Grants:
    """Return the intersection of the requested grants and those that an administrator allows.

    Patterns, and hosts with an explicit address, are allowed only if they are identical; tools given by a path are
    never allowed.

    Args:
        wanted: The requested grants.
        allowed: The grants that the administrator allows.
    """
    return Grants(
        variables=tuple(name for name in wanted.variables if name in allowed.variables),
        hosts=tuple(name for name in wanted.hosts if _reaches(allowed.hosts, name)),
        build_hosts=tuple(name for name in wanted.build_hosts if _reaches(allowed.build_hosts, name)),
        images=tuple(name for name in wanted.images if _named(allowed.images, name)),
        llm_fields=tuple(name for name in wanted.llm_fields if _named(allowed.llm_fields, name)),
        llm_models=tuple(
            name
            for name in wanted.llm_models
            if name in allowed.llm_models or (not _WILDCARDS & set(name) and includes_model(allowed.llm_models, name))
        ),
        tools=tuple(name for name in wanted.tools if not is_path(name) and _named(allowed.tools, name)),
    )


def includes_model(names: Collection[str], model: str) -> bool:
    """Return whether names or patterns include a language model; one that searches the web must be named exactly."""
    return model in names or (not _SEARCHING.search(model) and any(fnmatchcase(model, name) for name in names))


def merge_grants(*grants: Grants) -> Grants:
    """Return the union of several grants."""
    fields = {name: [item for part in grants for item in getattr(part, name)] for name in Grants.model_fields}
    return Grants(**{name: tuple(dict.fromkeys(values)) for name, values in fields.items()})


def read_grants(**fields: Iterable[str]) -> Grants:
    """Return grants from the names in each field.

    Raises:
        MlereduxError: A name is not valid.
    """
    try:
        return Grants.model_validate({field: tuple(names) for field, names in fields.items()})
    except ValidationError as error:
        raise MlereduxError(f"{first_problem(error).message}.", hint="See `mleredux run --help`.") from None


def _covers(granted: Collection[str], name: str, *, on_all_ports: bool = False) -> bool:
    """Return whether granted hosts, perhaps with an address, cover the requested ones on any or all of their ports."""
    wanted, enough = Rule.read(name), all if on_all_ports else any
    ports = (wanted.port,) if wanted.port else (80, 443)
    rules = map(Rule.read, granted)
    return name in granted or any(enough(rule.allows(wanted.host, port) for port in ports) for rule in rules)


def _reaches(allowed: Collection[str], name: str) -> bool:
    return name in allowed or (Rule.read(name).address is None and _covers(allowed, name, on_all_ports=True))


def _named(patterns: Iterable[str], name: str) -> bool:
    return name in patterns or (not _WILDCARDS & set(name) and any(fnmatchcase(name, pattern) for pattern in patterns))
