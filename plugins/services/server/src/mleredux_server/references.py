"""Which agents somebody may name who does not run the server: none that read this machine's files or its network.

Agents that are installed are trusted. What is checked is what a request adds: a repository that is fetched from here,
and options that name folders, images, packages or variables of this machine.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import Agent
from mleredux.plugin.command import Catalogue

from mleredux_server.problems import Problem
from mleredux_server.security import Caller
from mleredux_server.service import Service
from mleredux_server.settings import Settings

_REPO = "repo:"
_SHAPE = re.compile(r"[!-\[\]-~]{1,1000}")
"""Printable ASCII without spaces and backslashes, so that nobody reads an address otherwise than git does."""
_SCP = re.compile(r"[\w.-]+@(?P<host>[\w.-]+):[^/].*")
_NPM = re.compile(r"(@[A-Za-z0-9~-][\w.~-]*/)?[A-Za-z0-9~-][\w.~-]*@[\w.^~*-]+")
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]*(=[\w.+:~-]+)?")
_PYTHON = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,\s-]*\])?\s*([=<>~!][\w.*+!<>=~,\s-]*)?(;[^/\\@]*)?")
_HTTPS_PORT = 443
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def check_agent(service: Service, caller: Caller, reference: str, options: Mapping[str, Any]) -> None:
    """Whether the caller may name this agent with these options; to be asked before anything is made of it.

    Raises:
        Problem: They may not.
        MlereduxError: There is no such agent, or it has no such options.
    """
    if caller.all_projects:
        return
    check_agent_reference(caller, reference, service.settings, known=service.catalogue.entries("agents"))
    check_made(service.catalogue, service.settings, reference, options)


def pin_agent(service: Service, caller: Caller, reference: str, options: Mapping[str, Any]) -> str:
    """As `check_agent`, of what a reference stands for now.

    Returns:
        The reference to go on with: a branch has become its commit, so that what was checked is what is run.
    """
    if ":" not in reference:
        check_agent(service, caller, reference, options)
        return reference
    check_agent_reference(caller, reference, service.settings, known=service.catalogue.entries("agents"))
    service.catalogue.forget_references()
    pinned = service.catalogue.agent(reference, options).reference or reference
    check_agent(service, caller, pinned, options)
    return pinned


def check_agent_reference(
    caller: Caller, reference: str, settings: Settings, *, known: Iterable[str] = frozenset()
) -> None:
    """Whether the caller may name this agent; nothing is fetched for the answer.

    Args:
        caller: Who asks; whoever runs the server may name anything.
        reference: An id, or `scheme:…`.
        settings: With the hosts that are allowed.
        known: Ids of agents that are installed.

    Raises:
        Problem: They may not.
    """
    if caller.all_projects or ":" not in reference or reference.partition("@")[0] in known:
        return
    if not reference.startswith(_REPO):
        raise _forbidden(f"Agents by {reference.partition(':')[0][:40]!r} lie on the server itself.")
    place = reference.removeprefix(_REPO).partition("#")[0]
    if not _SHAPE.fullmatch(place):
        raise _forbidden("The repository's address has characters that addresses have not.")
    if found := _SCP.fullmatch(place):
        _check_listed(found["host"], settings)
        return
    check_address(place, settings)


def check_address(url: str, settings: Settings) -> None:
    """Whether the server may fetch from an address for somebody else.

    Raises:
        Problem: It may not: it is no https, has credentials, or its host is not one that everybody could ask.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise _forbidden("The address is malformed.") from None
    if parts.scheme in ("ssh", "git+https") and host:
        _check_listed(host, settings)
    elif parts.scheme != "https" or not host:
        raise _forbidden("Only addresses that begin with https:// are fetched; paths of the server are not.")
    if parts.password is not None or (parts.username is not None and parts.scheme != "ssh"):
        raise _forbidden("The address holds credentials.")
    if settings.repo_hosts:
        _check_listed(host, settings)
    else:
        if port not in (None, _HTTPS_PORT):
            raise _forbidden(f"Nothing is fetched from port {port}.")
        _check_public(host)


def check_made(catalogue: Catalogue, settings: Settings, reference: str, options: Mapping[str, Any]) -> None:
    """Whether an agent, as its options make it, reads anything of this machine that it does not read without them.

    A repository that is not here yet is fetched for the answer.

    Raises:
        Problem: It does.
        MlereduxError: There is no such agent, or it has no such options.
    """
    made = catalogue.agent(reference, options)
    if reference.startswith(_REPO):
        _check_variables(made, (), settings)
        return
    if not options:
        return
    usual = _usual(catalogue, reference)
    _check_variables(made, (*usual.pass_env, *usual.secrets), settings)
    build, before = made.build, usual.build
    if (build.context, build.dockerfile, build.packages) != (before.context, before.dockerfile, before.packages):
        raise _forbidden("The options name folders or packages of the server.")
    if build.image != before.image and not any(fnmatchcase(build.image or "", one) for one in settings.agent_images):
        raise _forbidden(f"The image {(build.image or '')[:100]!r} is not one that the server offers.")
    for item in _added(build.npm, before.npm):
        if not _NPM.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is no package of npm with a version.")
    for item in _added(build.debian, before.debian):
        if not _DEBIAN.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is no package of Debian.")
    for item in _added((*build.python, *build.python_alone), (*before.python, *before.python_alone)):
        if _PYTHON.fullmatch(item):
            continue
        if "://" not in item or "@" in item.partition("://")[0] or not _SHAPE.fullmatch(item):
            raise _forbidden(f"{item[:100]!r} is neither a requirement with a version nor an address.")
        check_address(item, settings)


def _usual(catalogue: Catalogue, reference: str) -> Agent:
    """The agent without options; as it is declared, where it can't do without."""
    try:
        return catalogue.agent(reference, {})
    except MlereduxError:
        return catalogue.agent(reference)


def _check_variables(made: Agent, usual: Iterable[str], settings: Settings) -> None:
    taken = {*made.pass_env, *made.secrets} - set(usual) - set(settings.agent_variables)
    if taken:
        raise _forbidden(f"The agent takes variables of the server that it is not given: {', '.join(sorted(taken))}.")


def _added(now: Iterable[str], before: Iterable[str]) -> list[str]:
    known = set(before)
    return [item for item in now if item not in known]


def _check_listed(host: str, settings: Settings) -> None:
    if host.lower() not in (one.lower() for one in settings.repo_hosts):
        raise _forbidden(f"Nothing is fetched from {host[:100]!r} in this way.")


def _check_public(host: str) -> None:
    """Each of its addresses must be one that anybody can reach. git looks it up again: who must be sure lists hosts."""
    try:
        found = socket.getaddrinfo(host, _HTTPS_PORT, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _forbidden(f"The host {host[:100]!r} is not known.") from None
    for *_, address in found:
        if not _is_public(str(address[0])):
            raise _forbidden(f"Nothing is fetched from {host[:100]!r}: it lies in the server's own network.")


def _is_public(address: str) -> bool:
    """Whether an address, and one that is written inside it, is of the public network."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return _is_public(str(found.ipv4_mapped))
        inner = [found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if not all(_is_public(str(one)) for one in inner if one is not None):
            return False
    return found.is_global and not found.is_multicast


def _forbidden(detail: str) -> Problem:
    return Problem("forbidden", detail, hint="Name an agent that is installed, or ask who runs the server to allow it.")
