"""A relay between a program and a service, which a test interrupts: the service itself is left alone."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

Address = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""


class Relay:
    """Passes on connections until it is stopped, which cuts them; it can be started again at the same address.

    Args:
        at: Where it listens.
        service: Where the service listens.
    """

    def __init__(self, at: Address, service: Address) -> None:
        self._at, self._service = at, service
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        """Listen, and pass on connections."""
        if isinstance(self._at, str):
            Path(self._at).unlink(missing_ok=True)
        listener = _socket(self._at)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(self._at)
        listener.listen(64)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        assert self._listener is not None
        for connection in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._listener, self._open = None, []

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was stopped
            while True:
                client, service = listener.accept()[0], _socket(self._service)
                service.connect(self._service)
                self._open += [client, service]
                for pair in ((client, service), (service, client)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
