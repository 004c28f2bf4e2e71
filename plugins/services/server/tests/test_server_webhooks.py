"""Webhooks: signed messages that reach their receiver, and nothing else."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.server
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_server.database.tables import Delivery, Webhook, now
from mleredux_server.operations.deliverer import PAUSES, Deliverer
from mleredux_server.runs.summary import facts_of
from mleredux_server.scheduler.jobs import end_damaged, end_run
from mleredux_support.server_local import LocalServer
from sqlalchemy import select, update


class Receiver:
    """A server that keeps what it gets, and answers with the next of `answers`, else 204."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = f"127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[LocalServer]:
    runs = Path(tmp_path_factory.mktemp("webhooks")) / "runs"
    with LocalServer(runs, webhook_hosts=(receiver.place,)).running() as running:
        yield running


@pytest.fixture(scope="module")
def ann(local: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('ann')}"}, timeout=60) as made:
        yield made


@pytest.fixture
def hook(ann: httpx.Client, receiver: Receiver) -> Iterator[dict[str, Any]]:
    receiver.got.clear()
    receiver.answers.clear()
    made = ann.post("/v1/webhooks", json={"url": f"http://{receiver.place}/hook?x=1"})
    assert made.status_code == 201, made.text
    yield made.json()
    ann.delete(f"/v1/webhooks/{made.json()['id']}")


def end(local: LocalServer) -> str:
    """A run of ann's that has ended."""
    run = local.make_run(user="ann")
    run.ask_to_cancel()
    with local.service.database.writing() as session:
        end_run(session, run.id, facts_of(run), 1)
    return run.id


def deliver(local: LocalServer) -> None:
    """Send once what is due."""
    for thread in Deliverer(local.service).round():
        thread.join(60)


def test_a_signed_message_tells_of_a_run_that_ended(
    local: LocalServer, ann: httpx.Client, receiver: Receiver, hook: dict[str, Any]
) -> None:
    run_id = end(local)
    deliver(local)
    [(headers, body)] = receiver.got
    told = json.loads(body)
    assert told["type"] == "run.ended" and told["data"]["id"] == run_id and told["data"]["task"] == "digits"
    key = base64.b64decode(hook["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{right}"
    [delivery] = ann.get(f"/v1/webhooks/{hook['id']}/deliveries").json()["items"]
    assert delivery["id"] == headers["webhook-id"] and delivery["delivered_at"] and delivery["status"] == 204
    with local.service.database.reading() as session:
        assert hook["secret"] not in session.scalars(select(Webhook)).one().secret
    assert "secret" not in ann.get("/v1/webhooks").json()["items"][0]


def test_what_is_not_delivered_is_sent_again_under_the_same_id(
    local: LocalServer, ann: httpx.Client, receiver: Receiver, hook: dict[str, Any]
) -> None:
    receiver.answers[:] = [500, 302]
    ann.post(f"/v1/webhooks/{hook['id']}/test")
    for _ in range(3):
        deliver(local)
        deliver(local)  # nothing is due
        with local.service.database.writing() as session:
            later = update(Delivery).where(Delivery.next_at.is_not(None))
            session.execute(later.values(next_at=now() - timedelta(seconds=1)))
    assert len(receiver.got) == 3 and len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    [delivery] = ann.get(f"/v1/webhooks/{hook['id']}/deliveries").json()["items"]
    assert (delivery["attempts"], delivery["status"], delivery["message"]) == (3, 204, None)


def test_a_message_is_given_up_after_the_last_attempt(
    local: LocalServer, ann: httpx.Client, receiver: Receiver, hook: dict[str, Any]
) -> None:
    ann.post(f"/v1/webhooks/{hook['id']}/test")
    with local.service.database.writing() as session:
        session.execute(update(Delivery).where(Delivery.next_at.is_not(None)).values(attempts=len(PAUSES)))
    receiver.answers[:] = [503]
    deliver(local)
    [delivery] = ann.get(f"/v1/webhooks/{hook['id']}/deliveries").json()["items"]
    assert delivery["next_at"] is None and delivery["message"] == "The receiver responded with status 503."


def test_a_receiver_that_is_gone_gets_nothing_more(
    local: LocalServer, ann: httpx.Client, receiver: Receiver, hook: dict[str, Any]
) -> None:
    receiver.answers[:] = [410]
    ann.post(f"/v1/webhooks/{hook['id']}/test")
    deliver(local)
    end(local)
    deliver(local)
    assert len(receiver.got) == 1
    [shown] = ann.get("/v1/webhooks").json()["items"]
    assert shown["disabled_at"] is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://localhost/x",
        "https://169.254.169.254/latest",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[fec0::1]/",
        "https://10.0.0.1/",
        "http://example.org/",
        "https://user:password@example.org/",
        "https://127.0.0.1:8443/",
        "http://127.0.0.1:1/",
        "file:///etc/passwd",
    ],
)
def test_a_webhook_never_leads_into_the_servers_network(ann: httpx.Client, url: str) -> None:
    assert ann.post("/v1/webhooks", json={"url": url}).status_code in (403, 422)


def test_a_name_that_leads_elsewhere_later_is_checked_again(
    local: LocalServer, ann: httpx.Client, receiver: Receiver, hook: dict[str, Any]
) -> None:
    with local.service.database.writing() as session:
        session.execute(update(Webhook).values(url=f"https://localhost:{receiver.place.rpartition(':')[2]}/"))
    ann.post(f"/v1/webhooks/{hook['id']}/test")
    deliver(local)
    [delivery] = ann.get(f"/v1/webhooks/{hook['id']}/deliveries").json()["items"]
    assert receiver.got == [] and "not allowed" in delivery["message"]


def test_a_receiver_that_takes_its_time_delays_no_other(
    local: LocalServer,
    ann: httpx.Client,
    receiver: Receiver,
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mleredux_server.operations.deliverer._TIMEOUT", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as slow:

        def drip() -> None:
            connection, _ = slow.accept()
            with connection, contextlib.suppress(OSError):
                for byte in itertools.cycle(b"HTTP/1.1 200 OK "):
                    connection.sendall(bytes([byte]))
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        place = f"127.0.0.1:{slow.getsockname()[1]}"
        allowed = {"webhook_hosts": (receiver.place, place)}
        monkeypatch.setattr(local.service, "settings", local.service.settings.model_copy(update=allowed))
        late = ann.post("/v1/webhooks", json={"url": f"http://{place}/"}).json()["id"]
        for found in (late, hook["id"]):
            ann.post(f"/v1/webhooks/{found}/test")
        threads = Deliverer(local.service).round()
        assert len(threads) == 2 and all(thread.daemon for thread in threads)
        for thread in threads:
            thread.join(60)
    assert len(receiver.got) == 1
    [delivery] = ann.get(f"/v1/webhooks/{late}/deliveries").json()["items"]
    assert delivery["attempts"] == 1 and "took longer than 2 seconds" in delivery["message"]
    ann.delete(f"/v1/webhooks/{late}")


def test_a_run_whose_directory_is_damaged_is_told_of(
    local: LocalServer, receiver: Receiver, hook: dict[str, Any]
) -> None:
    run = local.make_run(user="ann")
    with local.service.database.writing() as session:
        end_damaged(session, run.id, "The run's directory is missing.")
    deliver(local)
    [(_, body)] = receiver.got
    assert json.loads(body)["data"]["status"] == "failed" and json.loads(body)["data"]["id"] == run.id


def test_others_neither_see_nor_change_it(local: LocalServer, ann: httpx.Client, hook: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {local.user('bob')}"}
    assert httpx.get(f"{local.url}/v1/webhooks", headers=headers).json()["items"] == []
    assert httpx.delete(f"{local.url}/v1/webhooks/{hook['id']}", headers=headers).status_code == 404
    body = {"url": "https://example.org/", "project": "ann"}
    assert httpx.post(f"{local.url}/v1/webhooks", headers=headers, json=body).status_code in (403, 404)
