"""The proxy of runs and builds: allowed hosts only, never this machine's network, and everything in the record."""

from __future__ import annotations

import base64
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.sandboxes.egress import ANY, Rule, is_public
from mleredux.models import HostUse
from mleredux_containers.egress import Egress


class _Site(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked, as its own server or as a proxy."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = f"{self.path} {dict(self.headers)}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Proxy-Authorization")))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.do_GET()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        server.seen = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def uses() -> list[HostUse]:
    return []


@pytest.fixture
def proxy(tmp_path: Path, uses: list[HostUse], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Egress]]:
    """`proxy("host:80", …)` starts one with these rules."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    made: list[Egress] = []

    def make(*rules: str, any_host: bool = False) -> Egress:
        given = [Rule.read(rule) for rule in rules] + ([Rule(ANY)] if any_host else [])
        made.append(Egress(tmp_path / "proxy.sock", given, "run", uses.append))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop()


def ask(egress: Egress, text: str) -> str:
    """The whole answer to a request."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(egress.path))
        client.sendall(text.encode())
        said = b""
        while block := client.recv(65536):
            said += block
    return said.decode()


@pytest.mark.attack
def test_an_allowed_host_is_reached_another_is_not_and_both_are_counted(
    site: Any, proxy: Callable[..., Egress], uses: list[HostUse]
) -> None:
    port = site.server_address[1]
    egress = proxy(f"files.example=127.0.0.1:{port}")
    said = ask(egress, f"GET http://files.example:{port}/a?b HTTP/1.1\r\nProxy-Authorization: x\r\nHost: evil\r\n\r\n")
    assert said.startswith("HTTP/1.1 200") and "/a?b" in said and f"files.example:{port}" in said
    assert "Proxy-Authorization" not in said and "evil" not in said
    tunnel = ask(egress, f"CONNECT files.example:{port} HTTP/1.1\r\n\r\nGET /t HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert tunnel.startswith("HTTP/1.1 200 Connection established") and "/t " in tunnel
    for target in (f"127.0.0.1:{port + 1}", "other.example:443", f"localhost:{port}", f"files.example:{port + 1}"):
        assert ask(egress, f"CONNECT {target} HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403"), target
    egress.stop()
    counted = {(use.host, use.port, use.allowed): use for use in uses if use.connections}
    good = counted["files.example", port, True]
    assert good.connections == 2 and good.sent > 50 and good.received > 100 and good.phase == "run"
    assert counted["other.example", 443, False].connections == 1


PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.17.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "::"),
    *(
        "fec0::1",
        "::10.0.0.1",
        "::7f00:1",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:7f00:1::",
        "::ffff:0:a00:1",
        "5f00::1",
        "1::1",
    ),
]


@pytest.mark.parametrize("address", ["8.8.8.8", "2a00:1450::1", "2620:fe::fe", "64:ff9b::808:808", "2002:808:808::1"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.attack
def test_no_name_leads_into_this_machine_or_its_network(
    address: str, proxy: Callable[..., Egress], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_public(address)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    good = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))
    bad = (family, socket.SOCK_STREAM, 6, "", (address, 443))
    connected: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: [good, bad])
    monkeypatch.setattr(socket, "create_connection", lambda *a, **_k: connected.append(a))
    for egress in (proxy(any_host=True), proxy("rebound.example")):
        assert ask(egress, "CONNECT rebound.example:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403")
    assert connected == []


@pytest.mark.attack
def test_what_was_checked_is_what_is_connected_to(
    proxy: Callable[..., Egress], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: [(2, 1, 6, "", (one, 443)) for one in next(answers)])
    connected: list[str] = []

    def connect(where: tuple[str, int], *_: Any) -> socket.socket:
        connected.append(where[0])
        raise OSError("not there")

    monkeypatch.setattr(socket, "create_connection", connect)
    egress = proxy(any_host=True)
    assert ask(egress, "CONNECT rebound.example:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 502")
    assert connected == ["93.184.216.34"] and egress.unreachable


@pytest.mark.attack
def test_the_callers_proxy_is_used_and_its_password_stays_outside(
    site: Any, proxy: Callable[..., Egress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:pa%40ss@127.0.0.1:{site.server_address[1]}")
    said = ask(proxy(any_host=True), "CONNECT nowhere.invalid:443 HTTP/1.1\r\n\r\n")
    assert said.startswith("HTTP/1.1 200 Connection established") and "pa@ss" not in said
    assert site.seen == [("nowhere.invalid:443", f"Basic {base64.b64encode(b'me:pa@ss').decode()}")]
    assert ask(proxy(any_host=True), "CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403")


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org:22", "example.org", 22, True),
        ("example.org:22", "example.org", 443, False),
        ("example.org", "evil-example.org", 443, False),
        ("example.org", "sub.example.org", 443, False),
        ("*.example.org", "sub.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("EXAMPLE.org", "example.org", 443, True),
        ("[2606:4700::1]:8443", "2606:4700::1", 8443, True),
        ("*.example.org:8443", "a.example.org", 8443, True),
        ("*.example.org:8443", "a.example.org", 443, False),
        ("*.example.org:8443", "example.org", 8443, False),
    ],
)
def test_rules_name_hosts_and_ports(rule: str, host: str, port: int, allowed: bool) -> None:
    assert Rule.read(rule).allows(host, port) is allowed


@pytest.mark.parametrize(
    "text",
    [
        "GET / HTTP/1.1\r\n\r\n",
        "GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        "GET ftp://example.org/ HTTP/1.1\r\n\r\n",
        "CONNECT [::1 HTTP/1.1\r\n\r\n",
        "CONNECT a:b:c HTTP/1.1\r\n\r\n",
        "CONNECT exa mple:1 HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
    ],
)
@pytest.mark.attack
def test_what_is_no_request_of_a_proxy_is_refused(text: str, proxy: Callable[..., Egress]) -> None:
    assert ask(proxy("example.org"), text).startswith(("HTTP/1.1 400", "HTTP/1.1 403"))
