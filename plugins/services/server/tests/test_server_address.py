"""One server a runs directory, whatever its file system does with locks."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from mleredux.errors import MlereduxError
from mleredux_server.operations import address, listener
from mleredux_server.settings import Settings
from mleredux_support.server import TOKEN


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(address, "BEAT_SECONDS", 0.3)
    return Settings(runs_dir=tmp_path / "runs")


def without_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux._core.store.files.fcntl.flock", lambda *_: None)


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "locks without effect"])
def test_a_second_server_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch, locks: bool) -> None:
    if not locks:
        without_effect(monkeypatch)
    with address.alone(settings):
        for _ in range(2):
            with pytest.raises(MlereduxError, match="Another server already uses"), address.alone(settings):
                raise AssertionError
    with address.alone(settings):
        """After the first has ended, the next one starts."""


def test_of_two_that_start_at_once_at_most_one_serves(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    without_effect(monkeypatch)
    both, serving, most = threading.Barrier(3), [0], [0]

    def serve() -> None:
        both.wait()
        try:
            with address.alone(settings):
                serving[0] += 1
                most[0] = max(most[0], serving[0])
                threading.Event().wait(2)
                serving[0] -= 1
        except MlereduxError:
            pass

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1


def test_the_place_of_one_that_was_killed_is_taken(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    without_effect(monkeypatch)
    settings.state_dir.mkdir(parents=True)
    (settings.state_dir / "server.beat").write_text("0123456789abcdef 1.0")
    with address.alone(settings):
        assert not (settings.state_dir / "server.beat").read_text().startswith("0123")


def test_one_whose_place_was_taken_while_it_stood_still_ends(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from mleredux._core.store import files
files.fcntl.flock = lambda *_: None
from mleredux_server.operations import address
from mleredux_server.settings import Settings
address.BEAT_SECONDS = 0.2
with address.alone(Settings(runs_dir=Path({str(tmp_path / "runs")!r}))):
    print("serving", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "serving\n"
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "runs" / ".server" / "server.beat").write_text("another 1.0")
        process.send_signal(signal.SIGCONT)
        assert process.wait(30) == -signal.SIGTERM


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_locks_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("mleredux._core.store.files.fcntl.flock", refuse)
    with pytest.raises(MlereduxError, match=r"can't be locked: .*\.") as refused, address.alone(settings):
        raise AssertionError
    assert "another file system" in str(refused.value.hint)


def start_with(listener: socket.socket, runs: Path) -> subprocess.Popen[bytes]:
    """Start a server as systemd does: the socket is descriptor 3, and variables say whose it is."""
    script = 'exec 3<&"$1"; shift; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    serve = [sys.executable, "-m", "mleredux", "serve", "--runs-dir", str(runs)]
    command = ["bash", "-c", script, "bash", str(listener.fileno()), *serve]
    return subprocess.Popen(command, pass_fds=(listener.fileno(),), env={**os.environ, "MLEREDUX_SERVE_TOKEN": TOKEN})


@pytest.mark.parametrize("requests", [0, 1], ids=["before its first request", "between two requests"])
def test_a_connection_accepted_before_the_end_gets_its_first_answer(
    requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "LAST_SECONDS", 60)
    server = uvicorn.Server(listener.configured(FastAPI()))
    request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening.dup()]})
        serving.start()
        with socket.create_connection(place) as accepted:
            for _ in range(requests):
                accepted.sendall(request)
                assert accepted.recv(9) == b"HTTP/1.1 "
            assert httpx.get(f"http://127.0.0.1:{place[1]}").status_code == 404, "so both are accepted"
            server.should_exit = True
            while server.servers and server.servers[0].is_serving():
                time.sleep(0.01)
            if not requests:
                accepted.sendall(request)
            ending = accepted.makefile("rb").read()
            assert requests or b" 404 " in ending
        serving.join()


def test_a_restart_refuses_no_connection_if_its_socket_is_passed(tmp_path: Path) -> None:
    answered, failed, over = [0], list[str](), threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/healthz"

        def ask() -> None:
            while not over.is_set():
                try:
                    assert httpx.get(url, timeout=120).status_code == 200
                    answered[0] += 1
                except httpx.HTTPError as error:
                    failed.append(repr(error))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for _ in range(3):
                before = answered[0]
                server = start_with(listener, tmp_path / "runs")
                try:
                    while answered[0] < before + 20 and not failed:
                        assert server.poll() is None
                        over.wait(0.05)
                finally:
                    server.send_signal(signal.SIGTERM)
                    server.wait(60)
            last = start_with(listener, tmp_path / "runs")
        finally:
            over.set()
            asking.join(120)
        last.terminate()
        last.wait(60)
    assert failed == [] and answered[0] >= 60


def test_what_is_passed_must_be_a_socket_of_tcp(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        assert start_with(listener, tmp_path / "runs").wait(60) == 1


def test_variables_for_another_process_are_ignored(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getppid()))
    monkeypatch.setenv("LISTEN_FDS", "1")
    with address.bound(settings.model_copy(update={"port": 0})) as own:
        assert own.getsockname()[0] == settings.host and own.fileno() != 3
