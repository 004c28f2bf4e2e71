"""The validation endpoint of one run: HTTP on a Unix socket and on this machine's loopback, outside the sandbox.

`POST /validate` (multipart field `file`, a raw body, or no body: the submission file as it lies in the output folder)
says whether a submission is well-formed. `GET /time` says how many seconds are left. `GET /health` says `running`.
"""

from __future__ import annotations

import contextlib
import email.parser
import email.policy
import hashlib
import http.server
import json
import os
import shutil
import socketserver
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux.models import SubmissionSchema, Verdict
from mleredux.submissions.validation import validate

BURST = 10
PER_SECOND = 0.5
MAX_UPLOAD = 1 << 30
_IDLE_SECONDS = 30


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
    """

    def __init__(
        self,
        run_id: str,
        schema: SubmissionSchema,
        output_dir: Path,
        record: Callable[[Verdict], None],
        seconds_left: Callable[[], float],
    ) -> None:
        self.schema, self.output_dir, self.record, self.seconds_left = (
            schema,
            output_dir,
            record,
            seconds_left,
        )
        self.limit = RateLimit()
        # Socket paths are limited to about a hundred bytes, runs directories are not.
        name = hashlib.sha256(f"{output_dir}\0{run_id}".encode()).hexdigest()[:16]
        self.folder = Path(tempfile.gettempdir()) / f"mleredux-{os.getuid()}-{name}"
        self.socket = self.folder / "validate.sock"
        self._servers: list[socketserver.BaseServer] = []

    @property
    def url(self) -> str:
        """The endpoint on this machine's loopback."""
        port = self._servers[1].server_address[1]  # type: ignore[index]
        return f"http://127.0.0.1:{int(port)}/validate"

    def start(self) -> None:
        """Open both sockets and answer from threads of their own."""
        self.folder.mkdir(mode=0o711, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._servers = [_UnixServer(str(self.socket), handler), _TcpServer(("127.0.0.1", 0), handler)]
        self.socket.chmod(0o666)  # the agent's user in a container is another than ours
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()

    def stop(self) -> None:
        """Close both sockets."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answer(self, upload: Path | None) -> tuple[int, Verdict]:
        """The HTTP status and the verdict on an uploaded file, or on the one in the output folder."""
        wait = self.limit.take()
        if wait > 0:
            return 429, Verdict(valid=False, message=f"Too many validations; ask again in {wait:.0f} seconds.")
        verdict = validate(self.schema, upload or self.output_dir / self.schema.file)
        self.record(verdict)
        return 200, verdict


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def get_request(self) -> tuple[Any, Any]:
        request, _address = super().get_request()
        return request, ("agent", 0)


class _TcpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False


class _Handler(http.server.BaseHTTPRequestHandler):
    endpoint: ValidationEndpoint
    timeout = _IDLE_SECONDS
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
        if self.path != "/validate":
            self._reply(404, {"error": "There are POST /validate, GET /time and GET /health."})
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if length < 0 or length > MAX_UPLOAD or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            self._reply(413, {"error": f"Send a Content-Length of at most {MAX_UPLOAD >> 20} MiB."})
            return
        with contextlib.ExitStack() as stack:
            upload = stack.enter_context(self._upload(length)) if length else None
            status, verdict = self.endpoint.answer(upload)
        self._reply(status, {"valid": verdict.valid, "message": verdict.message, "result": _mle_bench_words(verdict)})

    @contextlib.contextmanager
    def _upload(self, length: int) -> Any:
        """The uploaded submission as a file."""
        with tempfile.TemporaryDirectory(prefix="mleredux-upload-") as folder:
            body = Path(folder) / "body"
            with body.open("wb") as file:
                left = length
                while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
                    file.write(block)
                    left -= len(block)
            kind = self.headers.get("Content-Type", "")
            if kind.lower().startswith("multipart/"):
                _unpack_multipart(body, kind)
            yield body

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode() + b"\n"
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_arguments: object) -> None:
        """Nothing to the terminal; the run's event log has each call."""


def _mle_bench_words(verdict: Verdict) -> str:
    """What agents made for MLE-bench look for in the answer."""
    return "Submission is valid." if verdict.valid else f"Submission invalid! {verdict.message}"


def _unpack_multipart(body: Path, content_type: str) -> None:
    """Replace a multipart body by its first file."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body.read_bytes())
    parts = [part for part in message.walk() if not part.is_multipart()]
    named = [part for part in parts if part.get_param("name", header="content-disposition") == "file"]
    payload = (named or parts)[0].get_payload(decode=True) if parts else b""
    body.write_bytes(payload if isinstance(payload, bytes) else b"")
