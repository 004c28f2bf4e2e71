"""Serve the pages on the loopback interface until the program is stopped."""

from __future__ import annotations

import signal
import socket
import sys
import webbrowser
from collections.abc import Callable

import uvicorn
from mleredux.errors import MlereduxError, file_errors

from mleredux_view.guard import ONCE, Guard
from mleredux_view.site import make_site
from mleredux_view.source import Source

_SWITCH_SECONDS = 0.0005
"""Time in seconds for which a page yields to threads that read long rollouts, each time it opens a file."""


def serve(source: Source, port: int, *, browser: bool, listening: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        source: The source of the runs.
        port: The port; 0 selects a free one.
        browser: Whether to open the page in a browser.
        listening: Called with the one-time URL once the server responds.

    Raises:
        MlereduxError: The port is in use.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with file_errors(MlereduxError, f"Can't listen on port {port}", "Choose another --port."):
        listener.bind(("127.0.0.1", port))
    port = listener.getsockname()[1]
    guard = Guard(make_site(lambda _request: source), port)
    address = f"http://127.0.0.1:{port}/?{ONCE}={guard.once}"
    config = uvicorn.Config(guard, log_config=None, access_log=False, timeout_graceful_shutdown=1, server_header=False)
    server = uvicorn.Server(config)
    original = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await original(sockets)
        listening(address)
        if browser:
            webbrowser.open(address)

    server.startup = startup  # type: ignore[method-assign]
    sys.setswitchinterval(_SWITCH_SECONDS)
    source.version()  # reads the index, so that the first page does not wait for it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how it ends then, once everything is closed
    server.run(sockets=[listener])
