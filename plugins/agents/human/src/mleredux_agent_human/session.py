"""A person's session inside the sandbox: a shell in a terminal of its own, to which terminals attach and from which
they part without harm, and submissions. Ends with `finish`, with the shell, or at the time limit."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from mleredux_agentkit import Task, Trajectory, write

from mleredux_agent_human.transcript import RC, Transcript
from mleredux_agent_human.wire import FOLDER, MAX_LINE, address

_POLL = 0.2
_BLOCK = 1 << 16
_SHOWN_AGAIN = 1 << 13
_BETWEEN_SUBMISSIONS = 2.5
"""Seconds that a version lies still, so that it is kept before the next one replaces it."""
_NOTHING_YET = "Nothing was submitted yet: `submit FILE` first, or exit once more to end without a submission."


class Session:
    """The session of one run.

    Args:
        task: The task, as the sandbox tells it.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.folder = task.output_dir / FOLDER
        self.trajectory = Trajectory(task, "human")
        self._transcript = Transcript(self._ran)
        self._screen = b""
        self._clients: list[socket.socket] = []
        self._lock, self._submitting = threading.Lock(), threading.Lock()
        self._finished = threading.Event()
        self._submitted_at = 0.0
        self._master = -1
        self._shell = 0

    def run(self) -> int:
        """Serve until the end; the exit code."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._finished.set())
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            with address(self.folder) as path:
                server.bind(path)
                Path(path).chmod(0o600)
            server.listen(16)
            self._start_shell()
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
            try:
                self._relay()
            finally:
                self._end()
        return 0

    def _start_shell(self) -> None:
        write(self.folder / "rc", RC)
        shell = shutil.which("bash")
        command = [shell, "--noprofile", "--rcfile", str(self.folder / "rc"), "-i"] if shell else ["/bin/sh", "-i"]
        environment = {**os.environ, "TERM": "xterm-256color", "SHELL": command[0], "MLEREDUX_PYTHON": sys.executable}
        self._shell, self._master = pty.fork()
        if not self._shell:
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                os.execve(command[0], command, environment)
            finally:
                os._exit(127)

    def _relay(self) -> None:
        """Pass on what the shell writes, until it is over."""
        noticed, warned = False, False
        if commands := str(self.task.options.get("commands") or ""):
            os.write(self._master, commands.encode().rstrip(b"\n") + b"\n")
        while not self._finished.is_set():
            if not noticed and (notice := self.task.notice):
                noticed = True
                self._say(" ".join(notice.split()))
            if not select.select([self._master], [], [], _POLL)[0]:
                continue
            try:
                data = os.read(self._master, _BLOCK)
            except OSError:  # Linux's way to say that the shell has closed its terminal
                data = b""
            if data:
                self._show(self._transcript.feed(data))
                continue
            os.close(self._master)
            os.waitpid(self._shell, 0)
            self._shell = 0
            if warned or self.task.submission.exists():
                return
            warned = True
            self._start_shell()
            self._say(_NOTHING_YET)

    def _end(self) -> None:
        self.trajectory.say("The session ended.", stage="submit")
        self._say("The session has ended; what lies in this folder is kept.")
        shutil.rmtree(self.folder, ignore_errors=True)  # first, so that a terminal that returns finds no session
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        if self._shell:
            with contextlib.suppress(OSError):
                os.killpg(self._shell, signal.SIGHUP)

    def _ran(self, command: str, code: int, output: str) -> None:
        """Keep a step of the rollout."""
        result = output if code == 0 else f"{output}\n[exit code {code}]".lstrip("\n")
        self.trajectory.act("", "shell", {"command": command}, result, exit_code=code)

    def _show(self, data: bytes) -> None:
        with self._lock:
            self._screen = (self._screen + data)[-_SHOWN_AGAIN:]
            for client in list(self._clients):
                try:
                    client.sendall(data)
                except OSError:
                    self._clients.remove(client)

    def _say(self, sentence: str) -> None:
        self._show(f"\r\n\x1b[1m[mleredux] {sentence}\x1b[0m\r\n".encode())

    # Requests, each in a thread of its own.

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with (
            connection,
            contextlib.suppress(OSError, ValueError, KeyError, TypeError),
            connection.makefile("rb") as file,
        ):
            request: dict[str, Any] = json.loads(file.readline(MAX_LINE))
            if request["do"] == "attach":
                self._attach(connection, file, request)
                return
            answers: dict[str, Callable[[BinaryIO, dict[str, Any]], dict[str, Any]]] = {
                "submit": self._submit,
                "clock": lambda _file, _request: {"message": clock(self.task)},
                "finish": lambda _file, _request: {"message": "The session ends now; the submission is graded next."},
                "size": self._resize,
            }
            answer = answers[request["do"]](file, request)
            connection.sendall(json.dumps(answer).encode() + b"\n")
            if request["do"] == "finish":
                self._finished.set()

    def _attach(self, connection: socket.socket, file: BinaryIO, request: dict[str, Any]) -> None:
        with self._lock:
            connection.sendall(self._screen)
            self._clients.append(connection)
        self._resize(file, request)
        connection.settimeout(None)
        while data := connection.recv(_BLOCK):
            os.write(self._master, data)
        with self._lock, contextlib.suppress(ValueError):
            self._clients.remove(connection)

    def _resize(self, _file: BinaryIO, request: dict[str, Any]) -> dict[str, Any]:
        size = struct.pack("HHHH", int(request["rows"]), int(request["columns"]), 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        return {}

    def _submit(self, file: BinaryIO, request: dict[str, Any]) -> dict[str, Any]:
        target = self.task.submission
        with self._submitting:
            if request.get("size") is not None:
                part = target.with_name(f".{target.name}.part")
                try:
                    with part.open("wb") as copy:
                        left = int(request["size"])
                        while left and (block := file.read(min(left, _BLOCK))):
                            left -= copy.write(block)
                except OSError as error:
                    part.unlink(missing_ok=True)
                    return {"valid": False, "message": f"{target.name} can't be written: {error.strerror}."}
                if left:
                    part.unlink(missing_ok=True)
                    return {"valid": False, "message": "The file broke off; nothing was submitted."}
                time.sleep(max(0.0, self._submitted_at + _BETWEEN_SUBMISSIONS - time.monotonic()))
                part.replace(target)
                self._submitted_at = time.monotonic()
            answer = self.task.verdict()
            said = {"file": request.get("name") or target.name}
            self.trajectory.act("", "submit", said, answer["message"], stage="submit", is_buggy=not answer["valid"])
            return answer


def clock(task: Task) -> str:
    """The time that is left, in words."""
    left = max(0, int(float(os.environ.get("MLEREDUX_DEADLINE", task.deadline)) - time.time()))
    hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
    return f"{hours}:{minutes:02d}:{seconds:02d} left of {task.time_limit / 60:g} minutes."
