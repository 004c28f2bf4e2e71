"""For tests of commands: the program in this process, and a fake service on a real socket."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from mleredux._core.cli.root import main


class Told(NamedTuple):
    """The output of the program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The single document on stdout."""
        return json.loads(self.out)


def mleredux(*arguments: str, stdin: str = "") -> Told:
    """Run `mleredux ARGUMENTS` in this process, not on a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: int | str | None = None
    with (
        mock.patch.object(sys, "argv", ["mleredux", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Told(int(code or 0), *said)


class Asked(NamedTuple):
    """A request as it was received; header names are in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body of the request."""
        return json.loads(self.body)


@dataclass
class Answer:
    """The response to send."""

    status: int
    body: bytes
    headers: dict[str, str]


def answer(document: Any = None, status: int = 200, **headers: str) -> Answer:
    """Return a JSON response."""
    body = b"" if document is None else json.dumps(document).encode()
    return Answer(status, body, {"Content-Type": "application/json", **headers})


def problem(status: int, slug: str, detail: str, hint: str | None = None, **more: Any) -> Answer:
    """Return a response with problem details."""
    document = {"type": f"urn:mleredux:problem:{slug}", "status": status, "detail": detail, "hint": hint, **more}
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/problem+json"})


def page(*items: Any) -> Answer:
    """Return the only page of a list."""
    return answer({"items": list(items), "next": None})


class StandIn:
    """A fake service with predefined responses.

    Attributes:
        answers: Responses by `METHOD /path`: a response, a function of the request, or a list whose last element
            repeats.
        asked: All requests so far.
        gone: Whether connections are dropped without an answer.
    """

    def __init__(self, port: int = 0, answers: dict[str, Any] | None = None) -> None:
        self.answers: dict[str, Any] = answers or {}
        self.asked: list[Asked] = []
        self.gone = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, parts.path, parse_qs(parts.query), headers, body)
                if outer.gone:
                    self.close_connection = True
                    return
                outer.asked.append(asked)
                found = outer.answers.get(f"{self.command} {parts.path}")
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                if callable(found):
                    found = found(asked)
                given = found or problem(404, "not-found", "There is no such thing.")
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(given.body)))
                self.end_headers()
                self.wfile.write(given.body)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Stop listening, and drop open connections."""
        self.gone = True
        self._server.shutdown()
        self._server.server_close()

    def bodies(self, method: str, path: str) -> list[Any]:
        """Return the JSON bodies that were sent to a path."""
        return [asked.json for asked in self.asked if (asked.method, asked.path) == (method, path)]
