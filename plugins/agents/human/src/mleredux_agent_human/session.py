"""A person's session inside the sandbox: a shell in its own terminal, to which other terminals can attach, and from
which they can detach safely. It ends with `finish`, with the shell, or at the time limit."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import struct
import sys
import termios
import threading
from typing import Any, BinaryIO

from mleredux_agentkit import Task, write
from mleredux_agentkit import session as base
from mleredux_agentkit.wire import readable

from mleredux_agent_human.jupyter import Jupyter
from mleredux_agent_human.transcript import RC, Transcript, plain

_POLL = 0.2
_BLOCK = 1 << 16
_SHOWN_AGAIN = 1 << 13
_NOTHING_YET = "Nothing has been submitted yet. Run `submit FILE`, or exit again to end without a submission."


class Session(base.Session):
    """The session of one person."""

    def __init__(self, task: Task, agent: str) -> None:
        super().__init__(task, agent)
        self._transcript = Transcript(self._ran)
        self._screen = b""
        self._clients: list[socket.socket] = []
        self._lock = threading.Lock()
        self._master = -1
        self._shell = 0
        self._jupyter: Jupyter | None = None
        self._noticed = False

    def answers(self) -> dict[str, base.Answer]:
        """Return the handlers of requests: those of any session, of terminals, and of Jupyter."""
        handlers = {**super().answers(), "attach": self._attach, "size": self._resize, "cell": self._cell}
        handlers["jupyter"] = lambda _file, _request: self._jupyter.state() if self._jupyter else {}
        return {**handlers, "forward": self._jupyter.forward} if self._jupyter else handlers

    def begin(self) -> None:
        """Start the shell, and Jupyter if requested."""
        if self.task.options.get("jupyter"):
            self._jupyter = Jupyter(self.task, self.folder / "jupyter")
        self._start_shell()

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

    def work(self) -> None:
        """Forward the shell's output until it ends."""
        noticed, warned = False, False
        if commands := str(self.task.options.get("commands") or ""):
            os.write(self._master, commands.encode().rstrip(b"\n") + b"\n")
        while not self.finished.is_set():
            if not noticed and (notice := self.task.notice):
                noticed = True
                self._print(" ".join(notice.split()))
            if not readable([self._master], _POLL):
                continue
            try:
                data = os.read(self._master, _BLOCK)
            except OSError:  # on Linux, this means that the shell has closed its terminal
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
            self._print(_NOTHING_YET)

    def end(self) -> None:
        """Detach from the terminals, and stop the shell."""
        self._print("The session has ended; the files in this folder are kept.")
        if self._jupyter:
            self._jupyter.stop()
        super().end()  # before terminals detach, so that none of them finds a session again
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        if self._shell:
            with contextlib.suppress(OSError):
                os.killpg(self._shell, signal.SIGHUP)

    def _ran(self, command: str, code: int, output: str) -> None:
        """Record a step of the trajectory."""
        result = output if code == 0 else f"{output}\n[exit code {code}]".lstrip("\n")
        self.trajectory.act("", "shell", {"command": command}, result, exit_code=code)

    def _cell(self, file: BinaryIO, request: base.Request) -> dict[str, Any]:
        """Record a notebook's cell as a step; return the notice of the end, once."""
        cell = json.loads(file.read(int(request["size"])))
        command, code = {"command": str(cell["command"])}, int(cell["code"])
        self.trajectory.act("", "python", command, plain(cell["output"]), exit_code=code, is_buggy=code != 0)
        notice = None if self._noticed else self.task.notice
        if notice is None:
            return {}
        self._noticed = True
        return {"message": " ".join(notice.split())}

    def _show(self, data: bytes) -> None:
        with self._lock:
            self._screen = (self._screen + data)[-_SHOWN_AGAIN:]
            for client in list(self._clients):
                try:
                    client.sendall(data)
                except OSError:
                    self._clients.remove(client)

    def _print(self, sentence: str) -> None:
        self._show(f"\r\n\x1b[1m[mleredux] {sentence}\x1b[0m\r\n".encode())

    def _attach(self, file: BinaryIO, request: base.Request) -> dict[str, Any]:
        connection: socket.socket = request["connection"]
        with self._lock:
            connection.sendall(self._screen)
            self._clients.append(connection)
        self._resize(file, request)
        connection.settimeout(None)
        while data := connection.recv(_BLOCK):
            os.write(self._master, data)
        with self._lock, contextlib.suppress(ValueError):
            self._clients.remove(connection)
        return {}

    def _resize(self, _file: BinaryIO, request: base.Request) -> dict[str, Any]:
        size = struct.pack("HHHH", int(request["rows"]), int(request["columns"]), 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        return {}
