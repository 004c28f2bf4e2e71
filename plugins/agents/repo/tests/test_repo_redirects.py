"""git follows a redirect only to what may be named as a repository itself."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.agent import GIT_TOKEN
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import provide_secrets
from mleredux_agent_repo import git

Served = Callable[..., AbstractContextManager[int]]
REFUSED = {
    "loopback": "http://127.0.0.1:{inside}/agent.git",
    "its name": "http://localhost:{inside}/agent.git",
    "https": "https://127.0.0.1:{inside}/agent.git",
    "short form": "https://127.1:{inside}/agent.git",
    "as a number": "https://2130706433:{inside}/agent.git",
    "IPv6": "https://[::ffff:127.0.0.1]:{inside}/agent.git",
    "NAT64": "https://[64:ff9b::7f00:1]:{inside}/agent.git",
    "private": "https://10.0.0.1/agent.git",
    "metadata": "https://169.254.169.254/agent.git",
    "other host": "https://93.184.215.14/agent.git",
    "downgrade": "http://localhost:{port}/agent.git",
    "git": "git://localhost:{inside}/agent.git",
    "file": "file://{repository}",
    "no scheme": "//127.0.0.1:{inside}/agent.git",
    "user": "https://someone@localhost:{port}/agent.git",
    "backslash": "https:\\\\127.0.0.1:{inside}/agent.git",
    "again": "https://localhost:{port}/moved.git",
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.attack
def test_a_redirect_leads_nowhere_that_may_not_be_named(
    kind: str, repository: Path, tls: ssl.SSLContext, served: Served
) -> None:
    inside: list[str] = []
    moved: dict[str, str] = {}
    with (
        served(repository, sent=inside) as hidden,
        served(repository, tls, moved=moved) as port,
        pytest.raises(MlereduxError, match=r"^\S+ of https://localhost:\d+/moved\.git can't be fetched: .*redirects"),
    ):
        moved["moved.git"] = REFUSED[kind].format(inside=hidden, port=port, repository=repository)
        Catalogue().agent(f"repo:https://localhost:{port}/moved.git@main")
    assert not inside


@pytest.mark.parametrize("place", ["/agent.git", "https://localhost:{port}/agent.git"])
def test_a_repository_that_moved_on_its_server_is_found(
    place: str, repository: Path, tls: ssl.SSLContext, served: Served
) -> None:
    moved: dict[str, str] = {}
    with served(repository, tls, moved=moved) as port:
        moved |= {"moved.git": place.format(port=port), "older.git": "/moved.git"}
        for name in moved:
            assert Catalogue().agent(f"repo:https://localhost:{port}/{name}@main").id == "sampler"


@pytest.mark.attack
def test_a_token_is_sent_to_no_other_server(repository: Path, tls: ssl.SSLContext, served: Served) -> None:
    sent: list[str] = []
    moved: dict[str, str] = {}
    with served(repository, tls, sent=sent) as other, served(repository, tls, moved=moved) as port:
        moved["moved.git"] = f"https://localhost:{other}/agent.git"
        with provide_secrets({GIT_TOKEN: "pat-0123456789"}):
            assert Catalogue().agent(f"repo:https://localhost:{port}/moved.git@main").id == "sampler"
    assert sent and not any(sent)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "[::1]"])
@pytest.mark.parametrize("form", ["https://{}:{}/agent.git", "ssh://git@{}:{}/agent.git"])
@pytest.mark.attack
def test_any_host_does_not_mean_private_ones(
    name: str, form: str, repository: Path, tls: ssl.SSLContext, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "*")
    sent: list[str] = []
    with (
        served(repository, tls, sent=sent) as port,
        pytest.raises(MlereduxError, match=r"can't be fetched: its host (is in a private network|can't be resolved)\."),
    ):
        Catalogue().agent(f"repo:{form.format(name, port)}@main")
    assert not sent


def test_a_private_host_is_named_beside_any(
    repository: Path, tls: ssl.SSLContext, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "*,localhost")
    with served(repository, tls) as port:
        assert Catalogue().agent(f"repo:https://localhost:{port}/agent.git@main").id == "sampler"


class Endless(BaseHTTPRequestHandler):
    """Lists branches without end."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        self.end_headers()
        line = b"a" * 40 + b" refs/heads/" + b"x" * 60_000 + b"\n"
        with suppress(OSError):
            self.wfile.write(b"001e# service=git-upload-pack\n0000")
            while True:
                self.wfile.write((b"%04x" % (len(line) + 4) + line) * 20)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.mark.attack
def test_an_endless_list_of_branches_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "MEMORY_BYTES", 1 << 29)
    monkeypatch.setattr(git, "FETCH_SECONDS", 60.0)
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/agent.git"
        with pytest.raises(MlereduxError, match="Out of memory"):
            git.fetch(git.new_store(tmp_path / "store"), url, "main", shown=url)
        server.shutdown()
