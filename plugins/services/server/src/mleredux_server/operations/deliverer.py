"""Deliver the messages of webhooks, with retries.

Messages are signed according to Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 of
`ID.TIMESTAMP.BODY`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from mleredux import __version__
from mleredux.errors import one_line
from mleredux.plugin.files import host_addresses
from sqlalchemy import delete, select

from mleredux_server.database.tables import Delivery, Webhook, now
from mleredux_server.protocol.problems import Problem
from mleredux_server.service import Service

_LOG = structlog.get_logger()
PREFIX = "whsec_"
PAUSES = (5, 60, 300, 1800, 7200, 18_000, 36_000, 86_400)
"""Seconds between attempts; after the last one a message is given up."""
MOST_WEBHOOKS = 20
_KEPT = timedelta(days=30)
_TIMEOUT = 10.0
"""Time limit in seconds for connecting, and again for the rest of the exchange."""
_PURGE_EVERY = 3600.0
_AT_ONCE = 32
"""Maximum number of hosts that messages are sent to concurrently."""
_GONE = 410


def signature(secret: str, message_id: str, timestamp: int, body: str) -> str:
    """Return the value of the header `webhook-signature`.

    Args:
        secret: `whsec_` and the key in Base64.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, f"{message_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def check_url(url: str, allowed: Sequence[str]) -> list[str]:
    """Check where a message would go.

    Args:
        url: URL of the receiver.
        allowed: Hosts, with or without a port, that may be private and use http.

    Returns:
        The addresses of its host, any of which may be used.

    Raises:
        Problem: It is not https, has credentials, or its host is not public.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused("The URL is malformed.") from None
    listed = host in allowed or f"{host}:{port}" in allowed
    if not host or parts.username is not None or not (parts.scheme == "https" or (listed and parts.scheme == "http")):
        raise _refused("A webhook requires an https:// URL without credentials.")
    if not listed and port not in (None, 443):
        raise _refused(f"Port {port} is not allowed.")
    try:
        return list(host_addresses(host, port or 443, private=listed))
    except PermissionError as error:
        raise _refused(f"Sending to {host[:100]!r} is not allowed: {error}.") from None


def send(url: str, address: str, headers: dict[str, str], body: str) -> int:
    """Send a message to one address of a host, without following redirects; return the HTTP status.

    Raises:
        OSError, http.client.HTTPException: It can't be sent.
    """
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    plain = socket.create_connection((address, port), _TIMEOUT)
    with plain, plain.dup() as same, _ending(same) as late:
        try:
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body.encode(), headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            if not late.is_set():
                raise
        finally:
            connection.close()
    if late.is_set():
        raise TimeoutError(f"The receiver took longer than {_TIMEOUT:.0f} seconds.")
    return status


@contextmanager
def _ending(same: socket.socket) -> Iterator[threading.Event]:
    """End a connection that takes too long in total, since a socket's timeout applies only to each read.

    Args:
        same: A duplicate of its socket.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(OSError):
            same.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_TIMEOUT, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


class Deliverer:
    """The thread that delivers messages.

    Args:
        service: The service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._busy: set[str] = set()
        self._purge_at = 0.0
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it; messages that are not delivered are kept."""
        self._stopping.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stopping.wait(1.0):
            try:
                self.round()
            except Exception as error:  # a database that does not respond: the next round
                _LOG.error("webhooks can't be delivered now", reason=one_line(error))

    def round(self) -> list[threading.Thread]:
        """Start sending due messages, with a thread per host, so that no host delays another; return the threads."""
        if time.monotonic() >= self._purge_at:
            self._purge_at = time.monotonic() + _PURGE_EVERY
            with self._service.database.writing() as session:
                session.execute(delete(Delivery).where(Delivery.created_at < now() - _KEPT))
        with self._service.database.reading() as session:
            due = select(Delivery.webhook_id).where(Delivery.next_at <= now())
            hooks = session.execute(
                select(Webhook.id, Webhook.url).where(Webhook.id.in_(due), Webhook.disabled_at.is_(None))
            ).all()
        hosts: dict[str, list[str]] = {}
        for hook_id, url in hooks:
            hosts.setdefault(urlsplit(url).netloc, []).append(hook_id)
        waiting = [host for host in hosts if host not in self._busy]
        random.shuffle(waiting)  # with too many hosts, none is always last
        started = []
        for host in waiting[: max(0, _AT_ONCE - len(self._busy))]:
            self._busy.add(host)
            arguments = (host, hosts[host])
            started.append(threading.Thread(target=self._send_all, args=arguments, name="webhook", daemon=True))
            started[-1].start()
        return started

    def _send_all(self, host: str, hook_ids: Sequence[str]) -> None:
        """Send the due messages of a host, until one can't be delivered."""
        query = select(Delivery, Webhook).join(Webhook, Webhook.id == Delivery.webhook_id).limit(1)
        query = query.where(Webhook.id.in_(hook_ids), Webhook.disabled_at.is_(None)).order_by(Delivery.next_at)
        try:
            while not self._stopping.is_set():
                with self._service.database.reading() as session:
                    pair = session.execute(query.where(Delivery.next_at <= now())).first()
                if pair is None:
                    return
                status, message = self._try(pair)
                self._settle(pair[0].id, status, message)
                if message is not None:
                    return
        except Exception as error:  # a database that does not respond: the next round
            _LOG.error("webhooks can't be delivered now", reason=one_line(error))
        finally:
            self._busy.discard(host)

    def _try(self, pair: Any) -> tuple[int | None, str | None]:
        delivery, hook = pair
        service, at = self._service, int(time.time())
        try:
            secret = service.vault.open(f"{hook.project_id}:{hook.id}", hook.secret)
            addresses = check_url(hook.url, service.settings.webhook_hosts)  # checked again: names may change
            headers = {
                "Content-Type": "application/json",
                "User-Agent": f"mleredux-server/{__version__}",
                "webhook-id": delivery.id,
                "webhook-timestamp": str(at),
                "webhook-signature": signature(secret, delivery.id, at, delivery.body),
            }
            status = send(hook.url, addresses[0], headers, delivery.body)
        except Problem as problem:
            return None, problem.detail
        except Exception as error:  # whatever error the receiver or its stored secret causes, the message is settled
            return None, one_line(error)
        return status, None if 200 <= status < 300 else f"The receiver responded with status {status}."

    def _settle(self, delivery_id: str, status: int | None, message: str | None) -> None:
        with self._service.database.writing() as session:
            delivery = session.get(Delivery, delivery_id)
            if delivery is None:
                return
            delivery.attempts += 1
            delivery.status, delivery.message, delivery.next_at = status, message, None
            if message is None:
                delivery.delivered_at = now()
            elif status == _GONE:
                session.get_one(Webhook, delivery.webhook_id).disabled_at = now()
            elif delivery.attempts <= len(PAUSES):
                delivery.next_at = now() + timedelta(seconds=PAUSES[delivery.attempts - 1])


def _refused(detail: str) -> Problem:
    hint = "Use a public address, or ask the server administrator to allow it (`serve --webhook-host`)."
    return Problem("forbidden", detail, hint=hint)
