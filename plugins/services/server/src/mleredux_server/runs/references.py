"""Which agents users other than admins may use: none that can read the server's files or reach its network.

Installed agents are trusted. Only the additions of a request are checked: repositories to fetch, and options that name
folders, images, packages or variables on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from mleredux.errors import MlereduxError, NotGranted
from mleredux.plugin.agent import GIT_TOKEN, Agent, Grants, provided_secrets
from mleredux.plugin.command import Catalogue
from mleredux.plugin.files import host_addresses
from mleredux.plugin.host import check_grants, is_foreign, limit_grants, merge_grants, protected_variables, requests_of

from mleredux_server.accounts.security import Caller
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.sources import check_source
from mleredux_server.runs.uploaded import UPLOAD
from mleredux_server.service import Service
from mleredux_server.settings import Settings

_REPO = "repo:"
_SHAPE = re.compile(r"[!-\[\]-~]{1,1000}")
"""Printable ASCII without spaces and backslashes, so that no client parses an address differently from git."""
_SCP = re.compile(r"[\w.-]+@(?P<host>[\w.-]+):[^/].*")
_NPM = re.compile(r"(@[A-Za-z0-9~-][\w.~-]*/)?[A-Za-z0-9~-][\w.~-]*@[\w.^~*-]+")
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]*(=[\w.+:~-]+)?")
_PYTHON = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,\s-]*\])?\s*([=<>~!][\w.*+!<>=~,\s-]*)?(;[^/\\@]*)?")
_HTTPS_PORT = 443


def check_agent(service: Service, caller: Caller, reference: str, options: Mapping[str, Any]) -> None:
    """Check that the caller may use this agent with these options, before anything is created from it.

    Raises:
        Problem: The caller may not use it.
        MlereduxError: There is no such agent, or it has no such options.
    """
    check_source(service, caller, reference)
    if caller.all_projects:
        return
    check_agent_reference(caller, reference, service.settings, known=service.catalogue.entries("agents"))
    check_build(service.catalogue, service.settings, reference, options)


def pin_agent(service: Service, caller: Caller, reference: str, options: Mapping[str, Any]) -> str:
    """Check like `check_agent`, for the current target of a reference.

    Returns:
        The reference to continue with: a branch is resolved to its commit, so that the checked commit is the one that
        runs.
    """
    if ":" not in reference:
        check_agent(service, caller, reference, options)
        return reference
    check_source(service, caller, reference)
    check_agent_reference(caller, reference, service.settings, known=service.catalogue.entries("agents"))
    service.catalogue.forget_references()
    pinned = service.catalogue.agent(reference, options).reference or reference
    check_agent(service, caller, pinned, options)
    return pinned


def check_agent_reference(
    caller: Caller, reference: str, settings: Settings, *, known: Iterable[str] = frozenset()
) -> None:
    """Check that the caller may use this agent, without fetching anything.

    Args:
        caller: The requesting user; admins may use any agent.
        reference: An id, or `scheme:…`.
        settings: The settings, with the allowed hosts.
        known: Ids of installed agents.

    Raises:
        Problem: The caller may not use it.
    """
    if caller.all_projects or ":" not in reference or reference.partition("@")[0] in known:
        return
    if reference.startswith(UPLOAD):
        return  # `check_source` does
    if not reference.startswith(_REPO):
        raise _forbidden(f"{reference.partition(':')[0][:40]!r} agents are files on the server itself.")
    place = reference.removeprefix(_REPO).partition("#")[0]
    if not _SHAPE.fullmatch(place):
        raise _forbidden("The repository's URL has invalid characters.")
    if match := _SCP.fullmatch(place):
        _check_listed(match["host"], settings)
        return
    check_address(place, settings)


def check_address(url: str, settings: Settings) -> None:
    """Check that the server may fetch from an address for a user.

    Raises:
        Problem: The address is not https, has credentials, or its host is not public.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise _forbidden("The URL is malformed.") from None
    if parts.scheme in ("ssh", "git+https") and host:
        _check_listed(host, settings)
    elif parts.scheme != "https" or not host:
        raise _forbidden("Only https:// URLs are allowed, not paths on the server.")
    if parts.password is not None or (parts.username is not None and parts.scheme != "ssh"):
        raise _forbidden("The URL contains credentials.")
    if settings.repo_hosts:
        _check_listed(host, settings)
    else:
        if port not in (None, _HTTPS_PORT):
            raise _forbidden(f"Port {port} is not allowed.")
        _check_public(host)


def granted(catalogue: Catalogue, settings: Settings, agent: Agent, wanted: Grants | None = None) -> Grants:
    """Return an agent's grants on this server; the quota decides on the network mode.

    Args:
        agent: The agent; requests that the administrator allows are granted.
        wanted: Additional grants by the user.

    Raises:
        Problem: The administrator does not allow that.
    """
    protected = protected_variables(catalogue)
    allowed = settings.agent_grants
    allowed = allowed.model_copy(update={"variables": tuple(n for n in allowed.variables if n not in protected)})
    wanted = wanted or Grants()
    possible = limit_grants(wanted, allowed)
    for field in Grants.model_fields:
        if beyond := [name for name in getattr(wanted, field) if name not in getattr(possible, field)]:
            words = {
                "build_hosts": "hosts in builds",
                "llm_fields": "fields of requests to language models",
                "llm_models": "language models",
            }
            raise _forbidden(
                f"The {words.get(field, field)} {', '.join(beyond)[:200]} can't be granted on this server."
            )
    own = Grants(variables=tuple(name for name in provided_secrets() if name != GIT_TOKEN and name not in protected))
    return merge_grants(limit_grants(requests_of(agent), allowed), possible, own, Grants(images=settings.agent_images))


def check_build(catalogue: Catalogue, settings: Settings, reference: str, options: Mapping[str, Any]) -> None:
    """Check that an agent's options don't make it read anything on this machine that it does not read without them.

    A repository that is not cached is fetched.

    Raises:
        Problem: An option makes the agent do so.
        MlereduxError: There is no such agent, or it has no such options.
    """
    agent = catalogue.agent(reference, options)
    usual = None if is_foreign(agent) else _usual(catalogue, reference)
    try:
        check_grants(
            agent, granted(catalogue, settings, agent), agent.network, protected_variables(catalogue), installed=usual
        )
    except NotGranted as error:
        raise _forbidden(error.message) from error
    if usual is None or not options:
        return
    build, before = agent.build, usual.build
    if (build.context, build.dockerfile, build.packages) != (before.context, before.dockerfile, before.packages):
        raise _forbidden("The options refer to folders or packages on the server.")
    listed = any(fnmatchcase(build.image or "", pattern) for pattern in settings.agent_images)
    if build.image != before.image and not listed:
        raise _forbidden(f"The image {(build.image or '')[:100]!r} is not allowed on this server.")
    for item in _added(build.npm, before.npm):
        if not _NPM.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is not a valid npm package with a version.")
    for item in _added(build.debian, before.debian):
        if not _DEBIAN.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is not a valid Debian package.")
    for item in _added((*build.python, *build.python_alone), (*before.python, *before.python_alone)):
        if _PYTHON.fullmatch(item):
            continue
        if "://" not in item or "@" in item.partition("://")[0] or not _SHAPE.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is neither a requirement with a version nor a URL.")
        check_address(item, settings)


def _usual(catalogue: Catalogue, reference: str) -> Agent:
    """Return the agent without options, or as declared if it requires some."""
    try:
        return catalogue.agent(reference, {})
    except MlereduxError:
        return catalogue.agent(reference)


def _added(now: Iterable[str], before: Iterable[str]) -> list[str]:
    known = set(before)
    return [item for item in now if item not in known]


def _check_listed(host: str, settings: Settings) -> None:
    if host.lower() not in (name.lower() for name in settings.repo_hosts):
        raise _forbidden(f"Fetching from {host[:100]!r} is not allowed.")


def _check_public(host: str) -> None:
    """Check that each address is public; git repeats the check, and connects only to the checked address."""
    try:
        host_addresses(host, _HTTPS_PORT)
    except PermissionError as error:
        raise _forbidden(f"Fetching from {host[:100]!r} is not allowed: {error}.") from None


def _forbidden(detail: str) -> Problem:
    return Problem("forbidden", detail, hint="Use an installed agent, or ask the server administrator to allow it.")
