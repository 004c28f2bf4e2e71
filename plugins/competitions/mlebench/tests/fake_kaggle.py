"""A Kaggle on loopback: speaks the protocol of the official client over a real socket, and misbehaves on request.

The client posts JSON to `/v1/<service>/<method>`; archives are answered with a redirect to a storage server with a
signed address, which knows nothing of credentials (and refuses requests that carry them, as Google's storage does),
sends parts of files, and tells ETag, MD5 and modification time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOKEN = "kgl-token-of-the-test"
USER, KEY = "tester", "key-of-the-test"
_COMPETITIONS = "competitions.CompetitionApiService"


@dataclass
class Trouble:
    """What goes wrong with the next answers of one kind; each entry is used once, then all is well.

    Attributes:
        statuses: (status, headers) instead of an answer to an API call.
        cut_after: Bytes after which the storage breaks the connection.
        flip_at: Position of a byte that arrives changed.
    """

    statuses: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    cut_after: deque[int] = field(default_factory=deque)
    flip_at: deque[int] = field(default_factory=deque)


class FakeKaggle:
    """The server; a context manager.

    Attributes:
        archives: Bytes of the archive by competition.
        boards: Scores by competition, (private, public), best first.
        unaccepted: Competitions whose rules the account has not accepted.
        ranges: Whether the storage sends parts of files.
        tells_md5: Whether the storage tells the MD5 of files.
        bytes_per_second: Speed of the storage, unlimited where 0.
        requests: Every request: (method, path, headers, body).
        sent: Bytes sent by the storage.
    """

    def __init__(self, archives: dict[str, bytes] | None = None) -> None:
        self.archives = dict(archives or {})
        self.boards: dict[str, tuple[list[str], list[str]]] = {}
        self.unaccepted: set[str] = set()
        self.accepted_auth = {f"Bearer {TOKEN}", "Basic " + base64.b64encode(f"{USER}:{KEY}".encode()).decode()}
        self.trouble = Trouble()
        self.ranges, self.tells_md5, self.bytes_per_second = True, True, 0
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.sent = 0
        self.calls: Counter[str] = Counter()
        self._servers: list[ThreadingHTTPServer] = []

    def __enter__(self) -> FakeKaggle:
        self.endpoint = self._serve(_Api)
        self.storage = self._serve(_Storage)
        return self

    def __exit__(self, *_error: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _serve(self, handler: type[_Handler]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"fake": self}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self._servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    fake: FakeKaggle
    protocol_version = "HTTP/1.1"

    def log_message(self, *_anything: object) -> None:
        """Tests inspect `requests` instead."""

    def note(self, body: Any = None) -> None:
        self.fake.requests.append((self.command, self.path, dict(self.headers), body))

    def answer(self, status: int, content: Any = None, headers: dict[str, str] | None = None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.answer(status, {"code": status, "message": message}, headers)


class _Api(_Handler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.note(body)
        method = self.path.removeprefix("/v1/")
        self.fake.calls[method.rpartition("/")[2]] += 1
        if method == "security.OAuthService/IntrospectToken":
            return self.introspect(body)
        if method == "users.AccountService/GenerateAccessToken":
            return self.answer(200, {"token": TOKEN, "expiresIn": 3600, "userName": USER, "userId": 7})
        if self.headers.get("Authorization") not in self.fake.accepted_auth:
            return self.refuse(401, "Unauthenticated")
        if self.fake.trouble.statuses:
            status, headers = self.fake.trouble.statuses.popleft()
            return self.refuse(status, "not now", headers)
        if method == f"{_COMPETITIONS}/DownloadDataFiles":
            return self.download(body["competitionName"])
        if method == f"{_COMPETITIONS}/GetLeaderboard":
            return self.leaderboard(body)
        return self.refuse(404, "no such method")

    def introspect(self, body: dict[str, Any]) -> None:
        if f"Bearer {body['token']}" in self.fake.accepted_auth:
            return self.answer(200, {"active": True, "username": USER, "clientId": "", "userId": 7, "scope": ""})
        return self.refuse(404, "Token not found")

    def download(self, competition: str) -> None:
        if competition not in self.fake.archives:
            return self.refuse(404, "Not found")
        if competition in self.fake.unaccepted:
            return self.refuse(403, "You must accept this competition's rules before you'll be able to download files.")
        address = f"{self.fake.storage}/{competition}/bundle.zip?X-Goog-Signature=secret{len(self.fake.requests)}"
        return self.answer(302, None, {"Location": address})

    def leaderboard(self, body: dict[str, Any]) -> None:
        if body["competitionName"] not in self.fake.boards:
            return self.refuse(404, "Not found")
        board = self.fake.boards[body["competitionName"]][bool(body.get("overridePublic"))]
        start, size = int(body.get("pageToken") or 0), min(body.get("pageSize") or 20, 3)
        page = [
            {"teamId": start + i, "teamName": f"team {start + i}", "submissionDate": "2020-01-01T00:00:00Z", "score": s}
            for i, s in enumerate(board[start : start + size])
        ]
        following = str(start + size) if start + size < len(board) else ""
        return self.answer(200, {"submissions": page, "nextPageToken": following})


class _Storage(_Handler):
    def do_GET(self) -> None:
        self.note()
        if "Authorization" in self.headers or "X-Goog-Signature=" not in self.path:
            return self.refuse(400, "Signed requests carry no credentials")
        content = self.fake.archives[urlsplit(self.path).path.split("/")[1]]
        digest = hashlib.md5(content).digest()
        etag = f'"{digest.hex()}"'
        start = 0
        if self.fake.ranges and self.headers.get("If-Range") in (None, etag) and "Range" in self.headers:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        if start >= len(content):
            return self.refuse(416, "Range not satisfiable")
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "application/zip")
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.send_header("Content-Length", str(len(content) - start))
        if self.fake.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.fake.tells_md5:
            self.send_header("x-goog-hash", f"crc32c=AAAAAA==,md5={base64.b64encode(digest).decode()}")
        self.end_headers()
        return self.send(content, start)

    def send(self, content: bytes, start: int) -> None:
        trouble = self.fake.trouble
        ranged = self.headers.get("Range") is not None
        if trouble.flip_at and not ranged:
            position = trouble.flip_at.popleft()
            content = content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]
        end = len(content)
        # A client that goes on asks for all first, hangs up, and then asks for the rest: only that is cut.
        asks_again = self.fake.ranges and not ranged and self.fake.sent > 0
        if trouble.cut_after and not asks_again:
            end = min(end, start + trouble.cut_after.popleft())
            self.close_connection = True
        block = self.fake.bytes_per_second // 20 or 1 << 16
        pause = threading.Event()
        try:
            for position in range(start, end, block):
                piece = content[position : min(position + block, end)]
                self.wfile.write(piece)
                self.fake.sent += len(piece)
                if self.fake.bytes_per_second:
                    pause.wait(0.05)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


def zip_of(folder: Path) -> bytes:
    """A zip of a folder, as Kaggle packs one."""
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()
