"""The validation endpoint of one run: HTTP on a Unix socket and on this machine's loopback, outside the sandbox.

`POST /validate` (multipart field `file`, a raw body, or no body: the submission file as it lies in the output folder)
says whether a submission is well-formed. `GET /time` says how many seconds are left. `GET /health` says `running`.
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
from pathlib import Path
from typing import Any

from mleredux._core.submissions.validation import validate, validate_below
from mleredux.errors import SandboxError
from mleredux.models import Limits, SubmissionSchema, Verdict

BURST = 10
PER_SECOND = 0.5
MAX_UPLOAD = 1 << 30
MAX_CONNECTIONS = 128
_IDLE_SECONDS = 30
_SOCKET_BYTES = 103  # on macOS; 107 on Linux
_SLOT_SECONDS = 2
_WAIT_SECONDS, _UPLOAD_SECONDS = 120, 600
_DRAIN_BYTES = 64 << 20
_HEAD_BYTES = 1 << 16
_SHARE = 0.1
_USED_UP = (
    "This run has used up its share of time for validations that execute the submission; "
    "run it on the sample inputs, and compare its predictions with the sample predictions."
)


def share_of(limits: Limits) -> float:
    """Seconds of CPU time for which a run's validations may execute programs, beside the run's own limits."""
    return _SHARE * limits.time_limit * limits.cpus


class RateLimit:
    """A token bucket."""

    def __init__(self, burst: int = BURST, per_second: float = PER_SECOND) -> None:
        self._burst, self._per_second = burst, per_second
        self._tokens, self._time = float(burst), time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Take a token: 0.0 where there is one, else the seconds until there will be."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._time) * self._per_second)
            self._time = now
            if self._tokens >= 1:
                self._tokens -= 1
                return 0.0
            return (1 - self._tokens) / self._per_second


class ValidationEndpoint:
    """Serves one run, from `start()` to `stop()`.

    Args:
        run_id: Names the socket's folder, the same each time the run goes on.
        schema: All that is known of the submission.
        output_dir: The agent's output folder.
        record: Called with each verdict.
        seconds_left: How long the agent may go on.
        uploads: Where what is sent lies while it is checked; a folder of temporary files where None.
        refused: Called where there was no room for what was sent.
        share: Seconds on one processor for which submissions that are programs may be executed, in all.
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
    ) -> None:
        self.schema, self.output_dir = schema, output_dir
        self.record, self.seconds_left = record, seconds_left
        self.limit, self.uploads, self.refused, self.share = RateLimit(), uploads, refused, share
        # Runs directories, and TMPDIR, may have longer paths than a socket.
        name = hashlib.sha256(f"{output_dir}\0{run_id}".encode()).hexdigest()[:16]
        path = f"mleredux-{os.getuid()}-{name}/validate.sock"
        usual = Path(tempfile.gettempdir(), path)
        self.socket = usual if len(os.fsencode(usual)) <= _SOCKET_BYTES else Path("/tmp", path)
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
        """The endpoint on this machine's loopback."""
        port = self._servers[1].server_address[1]
        return f"http://127.0.0.1:{int(port)}/validate"

    def start(self) -> None:
        """Open both sockets and answer from threads of their own."""
        self.folder.mkdir(mode=0o711, exist_ok=True)
        status = self.folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise SandboxError(f"{self.folder} is not ours.", hint="Another program created it; remove it.")
        self.socket.unlink(missing_ok=True)
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._servers = [_UnixServer(str(self.socket), handler), _TcpServer(("127.0.0.1", 0), handler)]
        self.socket.chmod(0o666)  # the agent's user in a container is another than ours
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, args=(woken,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close both sockets; a verdict that comes later is not recorded."""
        with self._recording:
            self._stopped = True
        if self._thread is not None:
            self._wake.close()
            self._thread.join()
        for server in self._servers:
            server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self, woken: socket.socket) -> None:
        """Take connections until `_wake` is closed; the thread sleeps between them, as there may be many runs."""
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

    def admit(self) -> Verdict | None:
        """None where one more validation is free, else the refusal."""
        wait = self.limit.take()
        if wait <= 0:
            return None
        return Verdict(valid=False, message=f"Too many validations; ask again in {math.ceil(wait)} seconds.")

    def answer(self, upload: Path | None) -> Verdict:
        """The verdict on an uploaded file, or on the one in the output folder."""
        with self._one_at_a_time:  # however many ask, the supervisor's limits must not wait for their rows
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
    """Serves a limited number of connections at once; the next one waits a little for a slot, else it is closed."""

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
        """A client that breaks off is nobody's concern but its own."""


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def __init__(self, path: str, handler: type[_Handler]) -> None:
        super().__init__(path, handler)  # type: ignore[arg-type]  # typed for internet addresses only

    def get_request(self) -> tuple[Any, Any]:
        request, _address = super().get_request()
        return request, ("agent", 0)


class _TcpServer(_Server):
    pass


class _Handler(http.server.BaseHTTPRequestHandler):
    endpoint: ValidationEndpoint
    timeout = _IDLE_SECONDS
    protocol_version = "HTTP/1.1"  # so that clients who ask before a large upload are told to go on
    server_version = "mleredux"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(200, {"status": "running"})
        elif self.path == "/time":
            self._reply(200, {"seconds_left": round(self.endpoint.seconds_left(), 1)})
        else:
            self._reply(404, {"error": "There are POST /validate, GET /time and GET /health."})

    def do_POST(self) -> None:
        length = self._length()
        if self.path != "/validate":
            self._refuse(404, length, {"error": "There are POST /validate, GET /time and GET /health."})
            return
        if length is None:
            self._refuse(413, 0, {"error": f"Send a Content-Length of at most {MAX_UPLOAD >> 20} MiB."})
            return
        refusal = self.endpoint.admit()
        if refusal is not None:  # before the body is kept anywhere
            self._refuse(429, length, _answer(refusal))
            return
        if not length:
            self._reply(200, _answer(self.endpoint.answer(None)))
            return
        if not self.endpoint.uploading.acquire(timeout=_WAIT_SECONDS):
            self._refuse(503, length, {"error": "Another upload is being checked; ask again later."})
            return
        try:
            with self._upload(length) as upload:
                verdict = self.endpoint.answer(upload)
        except _Broken as error:
            self._refuse(400, 0, {"error": str(error)})
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.endpoint.refused()
            self._refuse(507, 0, {"error": "The run's disk has no room for the upload."})
        else:
            self._reply(200, _answer(verdict))
        finally:
            self.endpoint.uploading.release()

    def _length(self) -> int | None:
        """Size of the body; None where it is unknown, or more than is taken."""
        text = self.headers.get("Content-Length") or "0"
        known = text.isascii() and text.isdigit() and len(text) < 20 and not self.headers.get("Transfer-Encoding")
        return int(text) if known and int(text) <= MAX_UPLOAD else None

    def _refuse(self, status: int, length: int | None, content: dict[str, Any]) -> None:
        """Answer a request whose body nobody wants; some of it is read, for clients that don't listen meanwhile."""
        left = min(length or 0, _DRAIN_BYTES)
        while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
            left -= len(block)
        self._reply(status, content)

    @contextlib.contextmanager
    def _upload(self, length: int) -> Iterator[Path]:
        """The uploaded submission as a file.

        Raises:
            _Broken: The client sent less than it announced, or no file, or took too long.
            OSError: There is no room for it.
        """
        until = time.monotonic() + _UPLOAD_SECONDS
        with tempfile.TemporaryDirectory(prefix="mleredux-upload-", dir=self.endpoint.uploads) as folder:
            body = Path(folder) / "body"
            left = length
            with body.open("wb", buffering=0) as file:
                while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
                    if time.monotonic() > until:
                        raise _Broken(f"The upload took longer than {_UPLOAD_SECONDS} seconds.")
                    file.write(block)
                    left -= len(block)
            if left:
                raise _Broken("The upload broke off.")
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
        """Nothing to the terminal; the run's event log has each call."""


class _Broken(Exception):
    """Carries the sentence."""


def _answer(verdict: Verdict) -> dict[str, Any]:
    """The answer, with the words that agents made for MLE-bench look for."""
    words = "Submission is valid." if verdict.valid else f"Submission invalid! {verdict.message}"
    return {"valid": verdict.valid, "message": verdict.message, "result": words}


def _first_file(body: Path, content_type: str) -> Path:
    """The part named `file` of a multipart body, else its first part, in the body's place; nothing is held in memory.

    Raises:
        _Broken: There is none.
    """
    parameters = email.message.Message()
    parameters["Content-Type"] = content_type
    boundary = parameters.get_boundary()
    if not boundary or len(boundary) > 200:
        raise _Broken("The multipart upload names no boundary.")
    mark = b"--" + boundary.encode("latin-1", "replace")
    with body.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        chosen: tuple[int, int] | None = None
        for (_, head), (end, _) in itertools.pairwise(_delimiters(data, mark)):
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
            raise _Broken("The multipart upload holds no file.")
        size = chosen[1] - chosen[0]
        data.move(0, chosen[0], size)
    os.truncate(body, size)
    return body


def _delimiters(data: mmap.mmap, mark: bytes) -> Iterator[tuple[int, int]]:
    """Where what is before each line of the boundary ends, and what is behind it starts (RFC 2046, section 5.1.1)."""
    at = data.find(mark)
    while at >= 0:
        rest = data[at + len(mark) : at + len(mark) + _HEAD_BYTES].partition(b"\r\n")[0]
        if (at == 0 or data[at - 2 : at] == b"\r\n") and rest.strip(b" \t") in (b"", b"--"):
            yield at - 2, at + len(mark) + len(rest) + 2
        at = -1 if rest.strip(b" \t") == b"--" else data.find(mark, at + len(mark))
