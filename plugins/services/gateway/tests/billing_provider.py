"""A provider that counts by itself: it bills what it was told to write, whoever reads it and whatever it reports."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNTOLD = 100_000
"""Tokens that it writes if it is told no maximum."""
TURNED_AWAY = (400, 429, 503, 529)
"""Errors with which it bills nothing."""
INPUT, OUTPUT = 10.0, 100.0
"""USD per million tokens."""


class Bill:
    """What the provider bills. A request's plan is the JSON object in its last message.

    Plan: `write` (tokens, else the maximum that it was told), `ignore` (tokens, whatever it was told),
    `usage` (`true`, `omit`, `zero`, `text`, `float`), `end`
    (`whole`, `cut` in the middle, `drop` without an answer, a status), `pause` (seconds in the middle of an answer).
    """

    def __init__(self) -> None:
        self.tokens = self.calls = 0
        self.cost, self.density = 0.0, 0.25
        self.bodies: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.lock = threading.Lock()
        self.waiter = threading.Event()

    def add(self, body: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
        """Bill a request, as soon as it arrives; return its plan, and its tokens."""
        items = body["messages"] if "messages" in body else body["input"]
        text = items if isinstance(items, str) else items[-1]["content"]
        plan = json.loads(text)
        told = [body[name] for name in ("max_tokens", "max_completion_tokens", "max_output_tokens") if body.get(name)]
        most = max(told, default=UNTOLD) + (body.get("thinking") or {}).get("budget_tokens", 0)
        prompt = int(len(json.dumps(items)) * self.density)
        written = int(plan.get("ignore") or min(plan.get("write", most), most)) * int(body.get("n") or 1)
        if plan.get("end") in TURNED_AWAY:
            prompt = written = 0
        with self.lock:
            self.calls += 1
            self.tokens += prompt + written
            self.cost += (prompt * INPUT + written * OUTPUT) / 1e6
            self.bodies.append(body)
        return plan, prompt, written


def _usage(path: str, how: str, prompt: int, written: int) -> dict[str, Any]:
    names = (
        ("prompt_tokens", "completion_tokens") if path.endswith("completions") else ("input_tokens", "output_tokens")
    )
    values: dict[str, tuple[Any, Any]] = {
        "true": (prompt, written),
        "zero": (0, 0),
        "text": (str(prompt), str(written)),
        "float": (float(prompt), float(written)),
    }
    return {"usage": dict(zip(names, values[how], strict=True))} if how in values else {}


def _frames(path: str, usage: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream, in two halves of equal length."""
    if path.endswith("completions"):
        parts = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "word "}}]}] * 4
        return [*parts, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], **usage}]
    if path.endswith("responses"):
        parts = [{"type": "response.output_text.delta", "item_id": "i", "delta": "word "}] * 4
        return [*parts, {"type": "response.completed", "response": _whole(path, usage)}]
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}
    parts = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}] * 4
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [start, begun, *parts, {"type": "message_delta", "delta": {}, **usage}, {"type": "message_stop"}]


def _whole(path: str, usage: dict[str, Any]) -> dict[str, Any]:
    if path.endswith("completions"):
        message = {"role": "assistant", "content": "word " * 4}
        return {
            "id": "c",
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            **usage,
        }
    if path.endswith("responses"):
        return {"id": "r", "status": "completed", "output": [{"type": "message", "id": "i", "content": []}], **usage}
    return {"id": "m", "type": "message", "content": [{"type": "text", "text": "word " * 4}], **usage}


@contextmanager
def billing() -> Iterator[tuple[str, Bill]]:
    """Serve while the block lasts; yields the URL and the bill."""
    bill = Bill()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bill.headers = {name.lower(): value for name, value in self.headers.items()}
            plan, prompt, written = bill.add(body)
            end, usage = plan.get("end", "whole"), _usage(self.path, plan.get("usage", "true"), prompt, written)
            if end == "drop":
                self.close_connection = True
                return
            if isinstance(end, int):
                self._send(end, [b'{"error": {"message": "no"}}'], "application/json")
            elif body.get("stream"):
                events = [f"data: {json.dumps(event)}\n\n".encode() for event in _frames(self.path, usage)]
                middle = len(events) // 2
                self._send(200, events[:middle], "text/event-stream", last=False)
                bill.waiter.wait(plan.get("pause", 0))
                if end == "cut":
                    self.close_connection = True
                    return
                self._chunks(events[middle:], last=True)
            else:
                bill.waiter.wait(plan.get("pause", 0))
                data = json.dumps(_whole(self.path, usage)).encode()
                self._send(
                    200, [data[: len(data) // 2] if end == "cut" else data], "application/json", last=end != "cut"
                )
                self.close_connection = end == "cut"

        def _send(self, status: int, parts: list[bytes], kind: str, *, last: bool = True) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._chunks(parts, last=last)

        def _chunks(self, parts: list[bytes], *, last: bool) -> None:
            for part in parts:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            if last:
                self.wfile.write(b"0\r\n\r\n")

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the gateway closed the connection; it is billed all the same
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bill
    finally:
        bill.waiter.set()
        server.shutdown()
        thread.join()
        server.server_close()
