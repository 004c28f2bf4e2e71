"""The rules of a sandbox's only network access, a proxy: which hosts it allows, and how programs find it."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from dataclasses import dataclass

SOCKET = "proxy.sock"
PORT = 3128
"""The port on localhost at which the proxy listens in a sandbox."""
ANY = "*"
"""As a rule: any public host."""
TARGET = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?")
"""A host, with its port if it is not the default one."""
_UNICAST, _NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")
"""The only networks of IPv6 with public addresses; addresses of the second end with an IPv4 address."""
_USUAL_PORTS = (80, 443)
_DOMAIN = re.compile(r"(\*\.[\w.-]+):(\d{1,5})")


def is_public(address: str) -> bool:
    """Return whether an address, and any address embedded in it, is public and does not belong to this machine."""
    parsed, inner = ipaddress.ip_address(address.partition("%")[0]), list[ipaddress.IPv4Address | None]()
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return is_public(str(parsed.ipv4_mapped))
        inner = [parsed.sixtofour, *(parsed.teredo or ())]
        if parsed in _NAT64:
            inner.append(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF))
        elif parsed not in _UNICAST:
            return False
    embedded = all(is_public(str(each)) for each in inner if each is not None)
    return embedded and parsed.is_global and not parsed.is_multicast


@dataclass(frozen=True)
class Rule:
    """A host to which connections are allowed.

    Attributes:
        host: Its name or address, `*.DOMAIN`, or `*`.
        port: None: 80 and 443; any port for `*`.
        address: The address to connect to, instead of one that the name resolves to.
        private: Whether the host may be in a private network.
    """

    host: str
    port: int | None = None
    address: str | None = None
    private: bool = False

    @classmethod
    def read(cls, text: str, *, private: bool = False) -> Rule:
        """Read `NAME`, `NAME:PORT`, `NAME=ADDRESS:PORT`, an address, `*.DOMAIN` or `*.DOMAIN:PORT`."""
        name, equals, address = text.lower().partition("=")
        match = TARGET.fullmatch(address or name) or _DOMAIN.fullmatch(name)
        target, port = (match[1].strip("[]"), match[2]) if match else (address or name, None)
        exact = None
        with contextlib.suppress(ValueError):
            exact = target if ipaddress.ip_address(target) else None
        return cls(
            host=name if equals else target,
            port=int(port) if port else None,
            address=exact,
            private=private or exact is not None,
        )

    def allows(self, host: str, port: int) -> bool:
        """Return whether the rule allows this host and port."""
        if self.host == ANY:
            return True
        if port != self.port and (self.port is not None or port not in _USUAL_PORTS):
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


def variables(*, local: bool) -> dict[str, str]:
    """Return the variables by which programs find the proxy.

    Args:
        local: Whether localhost has other services, which must be accessed without the proxy.
    """
    url = f"http://localhost:{PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    proxies = {spelling: url for name in names for spelling in (name, name.upper())} | {"NODE_USE_ENV_PROXY": "1"}
    return proxies | ({"no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"} if local else {})
