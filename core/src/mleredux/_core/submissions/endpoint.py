"""The validation endpoint of one run: HTTP on a Unix socket and on this machine's loopback, outside the sandbox.

`POST /validate` (multipart field `file`, a raw body, or no body: the submission file in the output folder) returns
whether a submission is well-formed. `POST /score` (the same, with a file) returns its score on rows held back from the
training data, if the run has such scores. `GET /time` returns the remaining seconds. `GET /health` returns `running`.
"""

from __future__ import annotations

import contextlib
import email.message
import errno
import hashlib
import http.server
import itertools
import json
import math
import mmap
import os
import selectors
import shutil
import socket
import socketserver
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mleredux._core.submissions.rate_limit import RateLimit
from mleredux._core.submissions.validation import validate, validate_below
from mleredux.errors import SandboxError
from mleredux.models import Limits, SubmissionSchema, Verdict

MAX_UPLOAD = 1 << 30
MAX_CONNECTIONS = 128
_IDLE_SECONDS = 30
_SOCKET_BYTES = 103  # the maximum on macOS; 107 on Linux
_SLOT_SECONDS = 2
_WAIT_SECONDS, _UPLOAD_SECONDS = 120, 600
_DRAIN_BYTES = 64 << 20
_HEAD_BYTES = 1 << 16
_MAX_PARTS = 1_000
_SHARE = 0.1
_USED_UP = (
    "This run has used up its share of time for validations that execute the submission; "
    "run it on the sample inputs, and compare its predictions with the sample predictions."
)


def share_of(limits: Limits) -> float:
    """Return the CPU seconds for which a run's validations may execute programs, in addition to the run's limits."""
    return _SHARE * limits.time_limit * limits.cpus


def socket_path(run_id: str, output_dir: Path) -> Path:
    """Return the path of a run's socket, alone in a folder; TMPDIR may be too long, or not UTF-8."""
    name = hashlib.sha256(f"{output_dir}\0{run_id}".encode()).hexdigest()[:16]
    path = f"mleredux-{os.getuid()}-{name}/validate.sock"
    usual = Path(tempfile.gettempdir(), path)
    return usual if str(usual).isprintable() and len(os.fsencode(usual)) <= _SOCKET_BYTES else Path("/tmp", path)


class ValidationEndpoint:
    """Serves one run, from `start()` to `stop()`.

    Args:
        run_id: Names the socket's folder, which stays the same when the run is resumed.
        schema: The schema of the submission.
        output_dir: The agent's output folder.
        record: Called with each verdict.
        seconds_left: Returns the remaining seconds of the agent.
        uploads: The folder for uploads while they are checked; None: a temporary folder.
        refused: Called if there was no room for an upload.
        score: Scores predictions for rows held back from the training data, unless the second argument reports that the
            run has ended; returns a function that records the score and returns the answer. None: no such scores.
        share: Total CPU seconds for which submitted programs may be executed.
    """

    def __init__(
        self,
        run_id: str,
        schema: SubmissionSchema,
        output_dir: Path,
        record: Callable[[Verdict], object],
        seconds_left: Callable[[], float],
        uploads: Path | None = None,
        refused: Callable[[], None] = lambda: None,
        share: float = math.inf,
        score: Callable[[Path, Callable[[], bool]], Callable[[], dict[str, Any]]] | None = None,
    ) -> None:
        self.schema, self.output_dir = schema, output_dir
        self.record, self.seconds_left, self.scorer = record, seconds_left, score
        self.limit, self.uploads, self.refused, self.share = RateLimit(), uploads, refused, share
        self.socket = socket_path(run_id, output_dir)
        self.folder = self.socket.parent
        self._servers: list[_Server] = []
        self._connections = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._one_at_a_time = threading.Lock()
        self.uploading = threading.Lock()
        self._recording = threading.Lock()
        self._stopped = False
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL of the endpoint on this machine's loopback interface."""
        return f"http://127.0.0.1:{int(self._servers[1].server_address[1])}/validate"

    def start(self) -> None:
        """Open both sockets and answer from separate threads."""
        self.folder.mkdir(mode=0o711, exist_ok=True)
        status = self.folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise SandboxError(f"{self.folder} belongs to another program.", hint="Remove it, then start again.")
        self.socket.unlink(missing_ok=True)
        handler = type("Handler", (_Handler,), {"endpoint": self})
        # typed for internet addresses only
        self._servers = [_UnixServer(str(self.socket), handler), self._listen(handler)]  # type: ignore[arg-type]
        self.socket.chmod(0o666)  # the agent's user in a container is not our user
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, args=(woken,), daemon=True)
        self._thread.start()

    def _listen(self, handler: type[_Handler]) -> _Server:
        """Listen on the loopback interface, if possible on the port used before a restart, which the agent knows."""
        note = self.folder / "port"
        try:
            return _Server(("127.0.0.1", int(note.read_text())), handler)
        except (OSError, ValueError, OverflowError):
            server = _Server(("127.0.0.1", 0), handler)
        note.write_text(str(server.server_address[1]))
        return server

    def stop(self) -> None:
        """Close both sockets; later verdicts are not recorded."""
        with self._recording:
            self._stopped = True
        if self._thread is not None:
            self._wake.close()
            self._thread.join()
        for server in self._servers:
            server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self, woken: socket.socket) -> None:
        """Accept connections until `_wake` is closed; the thread sleeps between connections, as there may be many
        runs.
        """
        with woken, selectors.DefaultSelector() as selector:
            selector.register(woken, selectors.EVENT_READ)
            for server in self._servers:
                selector.register(server, selectors.EVENT_READ, server)
            while True:
                ready = [key.data for key, _ in selector.select()]
                if None in ready:
                    return
                for server in ready:
                    server.handle_request()

    def score(self, upload: Path | None) -> dict[str, Any]:
        """Return the score of an uploaded file with predictions for rows held back from the training data."""
        if self.scorer is None or upload is None:
            return {"score": None, "message": "Send the file with the predictions."}
        with self._one_at_a_time:
            record = self.scorer(upload, lambda: self._stopped)
            with self._recording:
                return {"score": None} if self._stopped else record()

    def answer(self, upload: Path | None) -> Verdict:
        """Return the verdict on an uploaded file, or on the file in the output folder."""
        with self._one_at_a_time:  # parsing rows of many requests must not delay the supervisor
            if self.share <= 0:
                return Verdict(valid=False, message=_USED_UP)
            if upload:
                verdict = validate(self.schema, upload, seconds=self.share)
            else:
                verdict = validate_below(self.schema, self.output_dir, seconds=self.share)
            self.share -= verdict.seconds
        with self._recording:
            if not self._stopped:
                self.record(verdict)
        return verdict


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves a limited number of connections at once; others wait briefly for a slot and are then closed."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = MAX_CONNECTIONS
    RequestHandlerClass: type[_Handler]

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.RequestHandlerClass.endpoint._connections.acquire(timeout=_SLOT_SECONDS):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.RequestHandlerClass.endpoint._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def get_request(self) -> tuple[Any, Any]:
        request, _address = super().get_request()
        return request, ("agent", 0)


class _Handler(http.server.BaseHTTPRequestHandler):
    endpoint: ValidationEndpoint
    timeout = _IDLE_SECONDS
    protocol_version = "HTTP/1.1"  # so that clients that wait for 100 Continue before a large upload receive it
    server_version = "mleredux"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(200, {"status": "running"})
        elif self.path == "/time":
            self._reply(200, {"seconds_left": round(self.endpoint.seconds_left(), 1)})
        else:
            self._reply(404, _ROUTES)

    def do_POST(self) -> None:
        text = self.headers.get("Content-Length") or "0"
        known = text.isascii() and text.isdigit() and len(text) < 20 and not self.headers.get("Transfer-Encoding")
        length = int(text) if known and int(text) <= MAX_UPLOAD else None
        if self.path not in _ANSWERS or (self.path == "/score" and self.endpoint.scorer is None):
            self._refuse(404, length, _ROUTES)
            return
        answer = partial(_ANSWERS[self.path], self.endpoint)
        if length is None:
            self._refuse(413, 0, {"error": f"Send a Content-Length of at most {MAX_UPLOAD >> 20} MiB."})
            return
        if (wait := self.endpoint.limit.take()) > 0:  # before the body is stored anywhere
            message = f"Too many validations; try again in {math.ceil(wait)} seconds."
            self._refuse(429, length, _answer(Verdict(valid=False, message=message)))
            return
        if not length:
            self._reply(200, answer(None))
            return
        if not self.endpoint.uploading.acquire(timeout=_WAIT_SECONDS):
            self._refuse(503, length, {"error": "Another upload is being checked; try again later."})
            return
        try:
            with self._upload(length) as upload:
                content = answer(upload)
        except _Broken as error:
            self._refuse(400, 0, {"error": str(error)})
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.endpoint.refused()
            self._refuse(507, 0, {"error": "The run's disk has no room for the upload."})
        else:
            self._reply(200, content)
        finally:
            self.endpoint.uploading.release()

    def _refuse(self, status: int, length: int | None, content: dict[str, Any]) -> None:
        """Answer a request without using its body; part of it is read, for clients that read no response before they
        have sent everything."""
        left = min(length or 0, _DRAIN_BYTES)
        while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
            left -= len(block)
        self._reply(status, content)

    @contextlib.contextmanager
    def _upload(self, length: int) -> Iterator[Path]:
        """Yield the uploaded submission as a file.

        Raises:
            _Broken: The client sent less than it announced, sent no file, or took too long.
            OSError: There is no room for the upload.
        """
        until = time.monotonic() + _UPLOAD_SECONDS
        with tempfile.TemporaryDirectory(prefix="mleredux-upload-", dir=self.endpoint.uploads) as folder:
            body = Path(folder) / "body"
            left = length
            with body.open("wb", buffering=0) as file, contextlib.suppress(TimeoutError):
                while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
                    if time.monotonic() > until:
                        raise _Broken(f"The upload took longer than {_UPLOAD_SECONDS} seconds.")
                    file.write(block)
                    left -= len(block)
            if left:
                raise _Broken("The upload was interrupted.")
            kind = self.headers.get("Content-Type", "")
            yield _first_file(body, kind) if kind.lower().startswith("multipart/") else body

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode() + b"\n"
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing to the terminal; the run's event log records each call."""


class _Broken(Exception):
    """Carries an error message."""


def _answer(verdict: Verdict) -> dict[str, Any]:
    """Return the response, with the phrases that agents written for MLE-bench look for."""
    words = "Submission is valid." if verdict.valid else f"Submission invalid! {verdict.message}"
    return {"valid": verdict.valid, "message": verdict.message, "result": words}


_ROUTES = {"error": "Supported requests: POST /validate, GET /time and GET /health."}
_ANSWERS: dict[str, Callable[[ValidationEndpoint, Path | None], dict[str, Any]]] = {
    "/validate": lambda endpoint, upload: _answer(endpoint.answer(upload)),
    "/score": ValidationEndpoint.score,
}


def _first_file(body: Path, content_type: str) -> Path:
    """Replace a multipart body with its part named `file`, else with its first part, without loading it into memory.

    Raises:
        _Broken: There is no part.
    """
    parameters = email.message.Message()
    parameters["Content-Type"] = content_type
    boundary = parameters.get_boundary()
    if not boundary or len(boundary) > 200:
        raise _Broken("The multipart upload has no boundary.")
    mark = b"--" + boundary.encode("latin-1", "replace")
    with body.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        chosen: tuple[int, int] | None = None
        for number, ((_, head), (end, _)) in enumerate(itertools.pairwise(_delimiters(data, mark))):
            if number == _MAX_PARTS:
                raise _Broken(f"The multipart upload has more than {_MAX_PARTS} parts.")
            content = data.find(b"\r\n\r\n", head - 2, min(head + _HEAD_BYTES, end + 2)) + 4
            if content < 4:
                break
            headers = email.message_from_bytes(data[head:content])
            named = headers.get_param("name", header="Content-Disposition") == "file"
            if chosen is None or named:
                chosen = content, max(content, end)
            if named:
                break
        if chosen is None:
            raise _Broken("The multipart upload contains no file.")
        size = chosen[1] - chosen[0]
        data.move(0, chosen[0], size)
    os.truncate(body, size)
    return body


def _delimiters(data: mmap.mmap, mark: bytes) -> Iterator[tuple[int, int]]:
    """Yield the end of the content before each boundary line, and the start of that after it (RFC 2046, 5.1.1)."""
    at = data.find(mark)
    while at >= 0:
        rest = data[at + len(mark) : at + len(mark) + _HEAD_BYTES].partition(b"\r\n")[0]
        if (at == 0 or data[at - 2 : at] == b"\r\n") and rest.strip(b" \t") in (b"", b"--"):
            yield at - 2, at + len(mark) + len(rest) + 2
        at = -1 if rest.strip(b" \t") == b"--" else data.find(mark, at + len(mark))
