"""Send requests to a service in a sandbox, from outside its processes but in its network, and measure its answers.

Imported by the parent of the confined program, so it uses only the standard library. That process may not start
threads, because its children are in another PID namespace.
"""

import asyncio
import time

MOST_BYTES = 1 << 12
_MOST_HEAD = 1 << 14
_PAUSE_SECONDS = 0.02


def serve_load(request: dict, running, until: float) -> dict:  # type: ignore[no-untyped-def,type-arg]
    """Wait until the service answers any request, then send each body, `clients` at a time.

    Args:
        request: `port`, `bodies` (strings), `order` (indices of bodies), `clients`, `deadline` (seconds).
        running: Returns whether the service is running.
        until: When to give up, by the monotonic clock.

    Returns:
        `started` (seconds, or None), `seconds`, and `answers`: for each index in `order`, the latency in seconds and
            the text, or None if there was no answer in time.
    """
    return asyncio.run(_serve(request, running, until))


async def _serve(request: dict, running, until: float) -> dict:  # type: ignore[no-untyped-def,type-arg]
    begun = time.monotonic()
    answers: list[tuple[float, str | None] | None] = [None] * len(request["order"])
    while True:
        first = asyncio.create_task(send(request["port"], request["bodies"][0], 5.0))
        while not first.done() and running():
            await asyncio.wait([first], timeout=_PAUSE_SECONDS)
        if not running() or time.monotonic() > until:
            first.cancel()
            return {"started": None, "seconds": 0.0, "answers": answers}
        if first.result()[1] is not None:
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    ready = time.monotonic()
    numbers = iter(range(len(answers)))

    async def client() -> None:
        for number in numbers:
            body = request["bodies"][request["order"][number]]
            answers[number] = await send(request["port"], body, request["deadline"])

    clients = [asyncio.create_task(client()) for _ in range(request["clients"])]
    while not all(task.done() for task in clients) and time.monotonic() < until and running():
        await asyncio.wait(clients, timeout=_PAUSE_SECONDS)
    for task in clients:
        task.cancel()
    return {"started": ready - begun, "seconds": time.monotonic() - ready, "answers": answers}


async def send(port: int, body: str, deadline: float) -> "tuple[float, str | None]":
    """Send a request; return its duration, and the answer if it arrived in time with status 200 and is not too long."""
    begun = time.monotonic()
    try:
        text = await asyncio.wait_for(_exchange(port, body.encode()), deadline)
    except (OSError, ValueError, EOFError, asyncio.LimitOverrunError, TimeoutError):
        text = None
    return time.monotonic() - begun, text


async def _exchange(port: int, body: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MOST_HEAD)
    try:
        head = f"POST /predict HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        status, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        if status.split()[1:2] != ["200"]:
            raise ValueError(status)
        lengths = [int(line.partition(":")[2]) for line in fields if line.startswith("content-length:")]
        if lengths and lengths[0] > MOST_BYTES:
            raise ValueError("too long")
        content, size = b"", lengths[0] if lengths else MOST_BYTES
        while len(content) < size and (part := await reader.read(size - len(content))):
            content += part
        return content.decode("utf-8")
    finally:
        writer.close()
