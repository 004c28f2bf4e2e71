"""Ports for programs that need a port number as an argument."""

from __future__ import annotations

import random
import socket
import time
from contextlib import suppress
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a free port of the loopback interface that no other program gets by chance before it is used, or reused.

    The system assigns ports for outgoing connections, and for requests for any port, from a separate range; this port
    is below it.

    Raises:
        RuntimeError: There is no free port.
    """
    first = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 32_768
    ports = range(min(20_000, max(1024, first - 5000)), first)
    for port in random.SystemRandom().sample(ports, min(100, len(ports))):
        with socket.socket() as tried, suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("No port is free.")


def wait_until_free(port: int, seconds: float = 60.0) -> None:
    """Wait until a program can listen on a port of the loopback interface again.

    Raises:
        OSError: It is still in use after these seconds.
    """
    until = time.monotonic() + seconds
    while True:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                return tried.bind(("127.0.0.1", port))
            except OSError:
                if time.monotonic() > until:
                    raise
        time.sleep(0.1)
