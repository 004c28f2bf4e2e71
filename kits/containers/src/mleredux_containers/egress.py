"""The only network access of a container: a forward proxy on a Unix socket that allows hosts by name, and logs them.

It resolves names itself and connects to the addresses that it checked, so that a name can't lead to this machine or its
network. If the caller uses a proxy, it connects through that proxy with the caller's password, which never enters the
sandbox.
"""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import socketserver
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mleredux._core.sandboxes.egress import TARGET, Rule, is_public
from mleredux.errors import file_fault
from mleredux.models.report import HostUse

_HEAD_BYTES = 64 << 10
_MOST_CONNECTIONS = 256
_MOST_HOSTS = 500
_CONNECT_SECONDS, _IDLE_SECONDS = 30, 900


class FiltersHosts:
    """A sandbox whose containers reach the network only through the proxy; a base of container sandboxes."""

    def open_egress(self, path: Path, hosts: Iterable[str], record: Callable[[HostUse], object]) -> Egress:
        """Return the proxy of a run to these hosts, without starting it."""
        return Egress(path, map(Rule.read, hosts), "run", record)


class Egress:
    """The proxy of one build or run, from `start()` to `stop()`.

    Args:
        path: The path of its socket.
        rules: The allowed hosts.
        phase: `build` or `run`, for the record.
        record: Called with each host at first contact, and with the final counts when the proxy stops.
    """

    def __init__(self, path: Path, rules: Iterable[Rule], phase: str, record: Callable[[HostUse], object]) -> None:
        self.path, self.rules, self.phase, self.record = path, tuple(rules), phase, record
        self._counts: dict[tuple[str, int, bool], list[int]] = {}
        self._lock = threading.Lock()
        self.unreachable = False
        """Whether an allowed host did not respond."""
        self._server: _Server | None = None

    def start(self) -> None:
        """Listen, and serve from separate threads."""
        self.path.unlink(missing_ok=True)
        self._server = _Server(str(self.path), type("Handler", (_Handler,), {"egress": self}))
        self.path.chmod(0o666)  # the user in a container is not our user
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening and record the counts."""
        if self._server is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        self.path.unlink(missing_ok=True)
        with self._lock:
            for (host, port, allowed), (times, sent, received) in self._counts.items():
                use = HostUse(phase=self.phase, host=host, port=port, allowed=allowed)
                self.record(use.model_copy(update={"connections": times, "sent": sent, "received": received}))
            self._counts.clear()

    def count(self, host: str, port: int, allowed: bool, *, times: int = 0, sent: int = 0, received: int = 0) -> None:
        """Add to the counts of a host."""
        with self._lock:
            key = (host[:255], port, allowed)
            if key not in self._counts:
                if len(self._counts) >= _MOST_HOSTS:
                    key = ("(others)", 0, allowed)
                else:
                    self.record(HostUse(phase=self.phase, host=key[0], port=port, allowed=allowed))
            counts = self._counts.setdefault(key, [0, 0, 0])
            for place, more in enumerate((times, sent, received)):
                counts[place] += more

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to a host, if that is allowed.

        Raises:
            PermissionError: The host is not allowed.
            OSError: The connection failed.
        """
        rules = [rule for rule in self.rules if rule.allows(host, port)]
        if not rules:
            raise PermissionError(f"{host}:{port} is not among the allowed hosts")
        fixed = next((rule.address for rule in rules if rule.address), None)
        if not fixed and (via := _users_proxy(host)):
            self._check(host, port, rules, must_resolve=False)
            return _through(via, host, port)
        last: OSError | None = None
        for address in [fixed] if fixed else self._check(host, port, rules):
            try:
                return socket.create_connection((address, port), _CONNECT_SECONDS)
            except OSError as error:
                last = error
        raise last or OSError(f"{host} has no address")

    def _check(self, host: str, port: int, rules: list[Rule], *, must_resolve: bool = True) -> list[str]:
        """Return the addresses of a host, after checking that each is allowed."""
        try:
            resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            if must_resolve:
                raise OSError(f"{host} can't be resolved") from error
            return []  # only the caller's proxy can resolve it
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in resolved))
        if not any(rule.private for rule in rules):
            for address in addresses:
                if not is_public(address) or _is_own(address):
                    raise PermissionError(f"{host} is an address of this machine or its network")
        return addresses


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, *arguments: object) -> None:
        self.free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(*arguments)  # type: ignore[arg-type]

    def process_request(self, request: object, client_address: object) -> None:
        self.free.acquire()
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self.free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect, because this is not an error."""


class _Handler(socketserver.BaseRequestHandler):
    egress: Egress
    request: socket.socket

    def handle(self) -> None:
        """Handle one connection: `CONNECT HOST:PORT`, or a request for `http://…`."""
        self.request.settimeout(_CONNECT_SECONDS)
        head, rest = self._read_head()
        method, _, target = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target = target.partition(" ")[0]
        tunnel = method == "CONNECT"
        try:
            parts = urlsplit(f"//{target}" if tunnel else target)
            host, port = (parts.hostname or "").rstrip(".").lower(), parts.port or (443 if tunnel else 80)
        except ValueError:
            return self._refuse(400, "This proxy only accepts CONNECT and http:// requests")
        if not host or not TARGET.fullmatch(f"[{host}]" if ":" in host else host) or parts.scheme not in ("", "http"):
            return self._refuse(400, "This proxy only accepts CONNECT and http:// requests")
        try:
            upstream = self.egress.connect(host, port)
        except PermissionError as error:
            self.egress.count(host, port, False, times=1)
            return self._refuse(403, f"{error}; the run does not allow it")
        except OSError as error:
            self.egress.unreachable = True
            self.egress.count(host, port, True, times=1)
            return self._refuse(502, f"{host}:{port} can't be reached: {file_fault(error)}")
        self.egress.count(host, port, True, times=1)
        with upstream:
            if tunnel:
                self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                first = _own_form(head, method, parts.path or "/", parts.query, parts.netloc)
                upstream.sendall(first)
                self.egress.count(host, port, True, sent=len(first))
            self._pump(upstream, host, port, rest)
        return None

    def _read_head(self) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            block = self.request.recv(8192)
            if not block or len(data) > _HEAD_BYTES:
                raise ConnectionError("no request arrived")
            data += block
        head, _, rest = data.partition(b"\r\n\r\n")
        return head, rest

    def _refuse(self, status: int, message: str) -> None:
        body = f"{message}.\n".encode("utf-8", "replace")
        names = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}
        self.request.sendall(
            f"HTTP/1.1 {status} {names[status]}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    def _pump(self, upstream: socket.socket, host: str, port: int, rest: bytes) -> None:
        """Forward bytes in both directions until both have ended, or no data arrives for a long time."""
        for side in (self.request, upstream):
            side.settimeout(_IDLE_SECONDS)
        if rest:
            upstream.sendall(rest)
            self.egress.count(host, port, True, sent=len(rest))

        def up() -> None:
            with contextlib.suppress(OSError):
                while block := self.request.recv(1 << 16):
                    upstream.sendall(block)
                    self.egress.count(host, port, True, sent=len(block))
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_WR)

        upwards = threading.Thread(target=up, daemon=True)
        upwards.start()
        with contextlib.suppress(OSError):
            while block := upstream.recv(1 << 16):
                self.egress.count(host, port, True, received=len(block))
                self.request.sendall(block)
        for side in (self.request, upstream):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        upwards.join(_CONNECT_SECONDS)


def _own_form(head: bytes, method: str, path: str, query: str, host: str) -> bytes:
    """Return the request as sent to the host itself: one per connection, without headers meant for proxies."""
    dropped = (b"proxy-", b"connection:", b"keep-alive:", b"host:")
    lines = [line for line in head.split(b"\r\n")[1:] if not line.lower().startswith(dropped)]
    first = f"{method} {path}{'?' if query else ''}{query} HTTP/1.1".encode("latin-1")
    named = f"Host: {host.rpartition('@')[2]}".encode("latin-1")
    return b"\r\n".join([first, named, *lines, b"Connection: close", b"", b""])


def _users_proxy(host: str) -> str | None:
    """Return the caller's own proxy for a host."""
    proxies = urllib.request.getproxies_environment()
    if urllib.request.proxy_bypass(host):
        return None
    return proxies.get("https") or proxies.get("http") or proxies.get("all")


def _through(proxy: str, host: str, port: int) -> socket.socket:
    """Return a connection to a host through another proxy, with the password from the proxy's address."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        place = (parts.hostname or "", parts.port or 3128)
    except ValueError:
        raise OSError("the address of your proxy is not valid") from None
    upstream = socket.create_connection(place, _CONNECT_SECONDS)
    if parts.scheme == "https":
        upstream = ssl.create_default_context().wrap_socket(upstream, server_hostname=parts.hostname)
    lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    if parts.username:
        password = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(password.encode()).decode()}")
    upstream.sendall("\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        block = upstream.recv(1)  # read no bytes beyond the headers
        if not block or len(answer) > _HEAD_BYTES:
            upstream.close()
            raise OSError("your proxy did not respond")
        answer += block
    status = answer.split(None, 2)[1:2]
    if status != [b"200"]:
        upstream.close()
        raise OSError(f"your proxy refused it ({b' '.join(status).decode('latin-1')})")
    return upstream


def _is_own(address: str) -> bool:
    """Return whether an address belongs to this machine: the source address of packets sent to it is the same
    address.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((address, 9))
        return str(probe.getsockname()[0]) == address
    return False


def configured_rules() -> list[Rule]:
    """Return the hosts of the caller's package indexes, which may be in a private network."""
    rules = []
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "NPM_CONFIG_REGISTRY", "npm_config_registry"):
        for address in os.environ.get(name, "").split():
            with contextlib.suppress(ValueError):
                parts = urlsplit(address)
                if parts.hostname:
                    port = parts.port or (80 if parts.scheme == "http" else 443)
                    rules.append(Rule(parts.hostname.lower(), port, private=True))
    return rules
