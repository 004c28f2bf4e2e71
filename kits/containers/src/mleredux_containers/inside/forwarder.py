"""Forward ports of localhost in the container to Unix sockets of the host (Python 3.6 or newer): the sockets of the
validation endpoint and of the gateway to language models. Usage: forwarder.py SOCKET PORT [SOCKET PORT]

The program returns as soon as it listens and continues as a daemon whose parent is init: an agent that waits for its
children does not wait for the daemon, and the container ends with the agent.
"""

import os
import socket
import sys

TYPE_CHECKING = False  # importing `typing` would take longer than the rest of the start
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

# The response that clients of either socket get while the program on the host is down; it may restart.
_SAID = "This service is not available at the moment; try again later."
_ABSENT = f'{{"valid": false, "message": "{_SAID}", "error": {{"type": "unavailable", "message": "{_SAID}"}}}}\n'
_ABSENT_HEAD = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    f"Content-Length: {len(_ABSENT)}\r\n\r\n"
)
_WAITING = 512
_TRIES, _TRY_SECONDS = 300, 0.1


async def _pump(reader: "StreamReader", writer: "StreamWriter") -> None:
    try:
        while True:
            data = await reader.read(1 << 16)
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        return  # one side has disconnected; the caller closes the other


async def _close(writer: "StreamWriter") -> None:
    try:
        await writer.drain()
        writer.close()
    except OSError:
        return


async def _connect(path: str) -> "tuple[StreamReader, StreamWriter]":
    """Connect to the program on the host; if its queue is full, asyncio mistakes unconnected sockets for connected
    ones.
    """
    import asyncio

    for _ in range(_TRIES):
        there, answer = await asyncio.open_unix_connection(path)
        try:
            answer.get_extra_info("socket").getpeername()
            return there, answer
        except OSError:
            answer.close()
            await asyncio.sleep(_TRY_SECONDS)
    raise OSError


async def _serve(path: str, reader: "StreamReader", writer: "StreamWriter") -> None:
    import asyncio

    try:
        there, answer = await _connect(path)
    except OSError:
        writer.write((_ABSENT_HEAD + _ABSENT).encode())
        await _close(writer)
        return
    request = asyncio.ensure_future(_pump(reader, answer))
    await _pump(there, writer)
    request.cancel()
    await _close(answer)
    await _close(writer)


def _listen(port: int) -> "list[socket.socket]":
    """Listen on 127.0.0.1, and on ::1 if the container supports it: `localhost` may be either."""
    listeners = [socket.socket()]
    listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listeners[0].bind(("127.0.0.1", port))
    try:
        second = socket.socket(socket.AF_INET6)
        second.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        second.bind(("::1", port))
        listeners.append(second)
    except OSError:
        pass  # no IPv6
    for listener in listeners:
        listener.listen(_WAITING)
    return listeners


async def _forward(path: str, listeners: "list[socket.socket]") -> None:
    import asyncio

    async def serve(reader: "StreamReader", writer: "StreamWriter") -> None:
        await _serve(path, reader, writer)

    for listener in listeners:
        await asyncio.start_server(serve, sock=listener, backlog=_WAITING)


def main(places: "list[str]") -> None:
    """Listen, then serve forever in a separate process."""
    pairs = [(places[i], _listen(int(places[i + 1]))) for i in range(0, len(places), 2)]
    if os.fork():
        os._exit(0)
    os.setsid()
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for path, listeners in pairs:
        loop.run_until_complete(_forward(path, listeners))
    loop.run_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
