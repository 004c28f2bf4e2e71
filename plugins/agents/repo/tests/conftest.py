"""A developer's agent in a git repository, on this disk and behind real servers."""

from __future__ import annotations

import base64
import http.server
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

SOLVE = """\
import csv, json, os
level = json.loads(os.environ["MLEREDUX_OPTIONS"])["level"]
print("level", level, "secret", os.environ.get("TOY_TOKEN", "none"))
task = json.load(open(os.environ["MLEREDUX_TASK_DIR"] + "/task.json"))
rows = list(csv.reader(open(os.environ["MLEREDUX_DATA_DIR"] + "/" + task["sample"])))
csv.writer(open(os.environ["MLEREDUX_SUBMISSION"], "w")).writerows(rows)
"""
MANIFEST = """\
[agent]
id = "sampler"
version = "3"
command = ["python", "/opt/agent/solve.py"]

[build]
python = ["-r requirements.txt"]

[environment]
secrets = ["TOY_TOKEN"]

[limits]
time_limit = "2m"
memory = "512m"

[options]
level = 1

[smoke]
time_limit = "1m"
"""

Write = Callable[..., Path]


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody."""
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    ended = subprocess.run(
        ["git", "-C", str(folder), *arguments], env={**os.environ, **who}, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


@pytest.fixture(name="git")
def git_fixture() -> Callable[..., str]:
    """Runs git in a folder; what it prints."""
    return git


@pytest.fixture(autouse=True)
def own_rules(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and no rules of this machine's."""
    monkeypatch.delenv("MLEREDUX_AGENT_HOSTS", raising=False)
    monkeypatch.delenv("MLEREDUX_AGENT_PATHS", raising=False)


@pytest.fixture
def write_agent(tmp_path: Path) -> Write:
    """Writes an agent's folder: files by name; None leaves one out."""

    def write(name: str = "agent", /, **files: str | None) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        content = {"mleredux-agent.toml": MANIFEST, "solve.py": SOLVE, "requirements.txt": "", **files}
        for path, text in content.items():
            if text is not None:
                (folder / path).write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def repository(tmp_path: Path, write_agent: Write) -> Path:
    """A bare repository: tag `v1`, then a branch `feature/next` with the agent in `agents/fast` too."""
    work = write_agent("work")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    git(work, "tag", "v1")
    git(work, "checkout", "-qb", "feature/next")
    shutil.copytree(work, work / "agents" / "fast", ignore=shutil.ignore_patterns(".git", "agents"))
    git(work, "add", "-A")
    git(work, "commit", "-qm", "second")
    git(work, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "agent.git"))
    return tmp_path / "agent.git"


@pytest.fixture
def git_daemon(repository: Path) -> Iterator[str]:
    """The repository behind `git daemon`; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    daemon = subprocess.Popen(
        [
            *("git", "daemon", "--reuseaddr", "--export-all", "--listen=127.0.0.1", f"--port={port}"),
            *(f"--base-path={repository.parent}", str(repository.parent)),
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/agent.git"
    finally:
        daemon.terminate()
        daemon.wait()


@pytest.fixture
def smart_http(repository: Path) -> Iterator[str]:
    """The repository behind git's own smart HTTP; its URL."""
    with served(repository) as port:
        yield f"http://127.0.0.1:{port}/agent.git"


@pytest.fixture(name="served")
def served_fixture() -> Callable[..., AbstractContextManager[int]]:
    """Serves a repository by git's smart HTTP."""
    return served


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's context for `localhost`, which git trusts and from which agents may be fetched."""
    pem = tmp_path / "tls.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(pem), "-out", str(pem)]
    subprocess.run([*made[:-1], f"{pem}.crt"], check=True, capture_output=True)
    monkeypatch.setenv("GIT_SSL_CAINFO", f"{pem}.crt")
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pem}.crt", pem)
    return context


@pytest.fixture
def private_https(repository: Path, tls: ssl.SSLContext) -> Iterator[tuple[str, list[str]]]:
    """The repository behind TLS, for the token `pat-0123456789`; its URL, and each `Authorization` that was sent."""
    sent: list[str] = []
    with served(repository, tls, "x-access-token:pat-0123456789", sent) as port:
        yield f"https://localhost:{port}/agent.git", sent


@contextmanager
def served(
    repository: Path,
    tls: ssl.SSLContext | None = None,
    pair: str | None = None,
    sent: list[str] | None = None,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[int]:
    """Git's smart HTTP on a port of the loopback.

    Args:
        tls: With a certificate.
        pair: Name and password that are needed.
        sent: Gets the `Authorization` of each request.
        moved: Repositories that are redirected: name to URL.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        """Runs `git http-backend`."""

        def _run(self) -> None:
            said = self.headers.get("Authorization", "")
            if sent is not None:
                sent.append(said)
            if pair is not None and said != f"Basic {base64.b64encode(pair.encode()).decode()}":
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            name = self.path.split("/")[1]
            if name in moved:
                self.send_response(301)
                self.send_header("Location", moved[name] + self.path.removeprefix(f"/{name}"))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            made = subprocess.run(
                ["git", "http-backend"],
                input=body,
                capture_output=True,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(repository.parent),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                },
            ).stdout
            head, _, content = made.partition(b"\r\n\r\n")
            fields = [line.partition(": ")[::2] for line in head.decode().splitlines()]
            status = next((value for name, value in fields if name == "Status"), "200 OK")
            self.send_response(int(status.split()[0]))
            for name, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))  # a connection that only ends is an error of TLS
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _run

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
