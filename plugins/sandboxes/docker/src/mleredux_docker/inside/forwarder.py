"""Forwards 127.0.0.1:PORT in the container to the validation endpoint's Unix socket (Python 3.6 or newer).

Returns as soon as it listens and goes on as a process of its own, so that it is nobody's child but init's:
an agent that waits for its children does not wait for this one, and the container ends with the agent.
"""

import os
import socket
import sys

TYPE_CHECKING = False  # importing `typing` would take longer than all the rest of the start
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

_ABSENT = b'{"valid": false, "message": "Validation can not be reached at the moment; try again later."}\n'
_ABSENT_HEAD = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    f"Content-Length: {len(_ABSENT)}\r\n\r\n"
)


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
        return  # one side has gone; whoever called closes the other


async def _close(writer: "StreamWriter") -> None:
    try:
        await writer.drain()
        writer.close()
    except OSError:
        return


async def _serve(path: str, reader: "StreamReader", writer: "StreamWriter") -> None:
    import asyncio

    try:
        there, answer = await asyncio.open_unix_connection(path)
    except OSError:
        writer.write(_ABSENT_HEAD.encode() + _ABSENT)
        await _close(writer)
        return
    request = asyncio.ensure_future(_pump(reader, answer))
    await _pump(there, writer)
    request.cancel()
    await _close(answer)
    await _close(writer)


def main(path: str, port: int) -> None:
    """Listen, and serve from a process of its own for ever."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    if os.fork():
        os._exit(0)
    os.setsid()
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(asyncio.start_server(lambda *pair: _serve(path, *pair), sock=listener))
    loop.run_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
