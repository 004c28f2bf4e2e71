"""With network `gateway` a container has no network: the gateway answers at localhost:4000, through a Unix socket."""

from __future__ import annotations

import dataclasses
import json
import socketserver
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SILENCE = 8


class _Gateway(socketserver.StreamRequestHandler):
    """Says `begun`, is silent for a while, and says back what it was told."""

    def handle(self) -> None:
        said = self.rfile.readline()
        self.wfile.write(b"begun\n")
        self.wfile.flush()
        time.sleep(SILENCE)
        self.wfile.write(said)


@pytest.fixture
def gateway() -> Iterator[Path]:
    """A Unix socket as a gateway opens it."""

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads, request_queue_size = True, 512

    with tempfile.TemporaryDirectory(prefix="mleredux-gateway-") as folder:
        Path(folder).chmod(0o711)
        path = Path(folder) / "gateway.sock"
        with Server(str(path), _Gateway) as server:
            path.chmod(0o666)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            yield path
            server.shutdown()


TALK = """
import json, os, socket, threading, time
answers, first = [], []

def talk(number, host):
    with socket.create_connection((host, 4000)) as connection:
        connection.sendall(b"%d\\n" % number)
        lines = connection.makefile("rb")
        began = time.monotonic()
        assert lines.readline() == b"begun\\n"
        first.append(time.monotonic() - began)
        answers.append((number, int(lines.readline())))

threads = [threading.Thread(target=talk, args=(i, ("localhost", "127.0.0.1")[i % 2])) for i in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({
    "answers": len(answers), "right": all(a == b for a, b in answers), "first": max(first),
    "interfaces": os.listdir("/sys/class/net"),
}))
"""


def test_many_silent_connections_go_through_at_once(make_launch, run, gateway):
    launch = make_launch("python", "-c", TALK, network="gateway", gateway_socket=gateway, limits={"processes": 512})
    ended, log = run(launch)
    assert ended.code == 0, log
    seen = json.loads(log)
    assert seen["right"] and seen["answers"] == 200
    assert seen["first"] < SILENCE, "what is there comes at once"
    assert seen["interfaces"] == ["lo"]


ASK = """
import urllib.error, urllib.request
try:
    urllib.request.urlopen("http://localhost:4000/v1/models")
except urllib.error.HTTPError as error:
    print(error.status, error.read().decode())
"""


def test_while_the_program_is_not_there_clients_are_told_to_try_again(make_launch, run, gateway):
    gateway.unlink()
    import socket

    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(str(gateway))
    launch = make_launch("python", "-c", ASK, network="gateway", gateway_socket=gateway)
    ended, log = run(launch)
    status, _, body = log.partition(b" ")
    assert status == b"503" and json.loads(body)["error"]["type"] == "unavailable"
    assert ended.code == 0


def test_an_image_without_python_is_told_where_the_gateway_is(make_launch, run, gateway):
    launch = make_launch("true", network="gateway", gateway_socket=gateway, env={"PATH": "/bin-without-python"})
    launch = dataclasses.replace(launch, command=("/bin/true",))
    assert b"connect to /mleredux/socket/gateway.sock instead" in run(launch)[1]
