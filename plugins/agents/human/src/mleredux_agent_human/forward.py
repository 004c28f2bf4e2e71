"""Connection forwarding: from a port on this machine into a session, and from there to Jupyter.

`python -m mleredux_agent_human.forward OUTPUT_DIR` prints the port, and exits with the session.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from mleredux_agentkit.wire import NoSession, dial, request

_BLOCK = 1 << 16


def join(read: Callable[[int], bytes], near: socket.socket, other: socket.socket) -> None:
    """Relay data between two connections until both are closed; `read` reads from the first."""
    back = threading.Thread(target=_copy, args=(other.recv, near), daemon=True)
    back.start()
    _copy(read, other)
    back.join()


def _copy(read: Callable[[int], bytes], target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := read(_BLOCK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _pass_on(connection: socket.socket, output: Path) -> None:
    with connection, contextlib.suppress(NoSession), dial(output, {"do": "forward"}) as session:
        join(connection.recv, connection, session)


def main(output: Path) -> None:
    """Forward connections from a free port into the session of an output folder."""
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.suppress(NoSession):
        print(server.getsockname()[1], flush=True)
        server.settimeout(1)
        while request(output, "clock"):
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                threading.Thread(target=_pass_on, args=(connection, output), daemon=True).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
