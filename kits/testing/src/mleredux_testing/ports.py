"""Ports for programs that must be told theirs."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port of the loopback that is free, and that nobody is given by chance until it is used, or used again.

    The system gives ports for outgoing connections, and to who asks for any, from a range of its own; this is below it.

    Raises:
        RuntimeError: There is none.
    """
    first = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 32_768
    ports = range(min(20_000, max(1024, first - 5000)), first)
    for port in random.SystemRandom().sample(ports, min(100, len(ports))):
        with socket.socket() as tried, suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("No port is free.")
