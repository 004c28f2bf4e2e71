"""The single rule for redirects: each hop is checked like the original address, and its host is pinned.

Clients in this program never follow redirects on their own. They reject them, or call `redirected` for each hop.
"""

from __future__ import annotations

import socket
from urllib.parse import urljoin, urlsplit

from mleredux._core.sandboxes.egress import is_public

MAX_HOPS = 5
"""Maximum number of redirects to follow."""


def redirected(origin: str, location: str) -> tuple[str, tuple[str, ...]]:
    """Return the URL of a redirect, and the only addresses of its host to connect to.

    Args:
        origin: The URL that was requested.
        location: The value of the header `Location` of its response.

    Returns:
        The URL, and no addresses if it has the scheme, host and port of the origin: it is already checked.

    Raises:
        PermissionError: The redirect leaves https, leads to a different host that is not public, or contains
            credentials.
    """
    try:
        target = urljoin(origin, location)
        old, new = urlsplit(origin), urlsplit(target)
        before, after = ((part.scheme, part.hostname, part.port) for part in (old, new))
    except ValueError:
        raise PermissionError("the address is malformed") from None
    if new.username is not None or new.password is not None:
        raise PermissionError("the address contains credentials")
    if after == before:
        return target, ()
    same_host = new.hostname == old.hostname
    if not new.hostname or not (new.scheme == "https" or (new.scheme == old.scheme and same_host)):
        raise PermissionError("only https:// addresses are followed")
    return target, host_addresses(new.hostname, new.port or new.scheme, private=same_host)


def host_addresses(host: str, port: int | str, *, private: bool = False) -> tuple[str, ...]:
    """Return the addresses of a host that may be connected to.

    Args:
        host: Its name or address.
        port: A port number, or the name of a service.
        private: Whether the addresses may be in a private network.

    Raises:
        PermissionError: An address is not allowed, or the host can't be resolved.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise PermissionError("its host can't be resolved") from None
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if not private and not all(is_public(address) for address in addresses):
        raise PermissionError("its host is in a private network")
    return addresses
