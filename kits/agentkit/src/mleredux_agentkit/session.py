"""The session inside a sandbox, which serves external requests on a socket in the output folder.

`python -m mleredux_agentkit.session` serves commands, code, submissions and the clock until `finish` or the time limit.
"""

from __future__ import annotations

import contextlib
import errno
import json
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mleredux_agentkit import workspace
from mleredux_agentkit.files import write
from mleredux_agentkit.shell import Finished, run
from mleredux_agentkit.task import Task
from mleredux_agentkit.trajectory import MAX_TEXT, Trajectory
from mleredux_agentkit.wire import FOLDER, MAX_CONTENT, MAX_LINE, address
from mleredux_agentkit.workspace import Completed

HOSTED = "mleredux_agents.hosted"
"""The module with which mleredux serves a session itself, if its sandbox does not isolate it."""
_BLOCK = 1 << 16
_BETWEEN_SUBMISSIONS = 2.5
"""Seconds for which a version is left unchanged, so that it is copied before the next one replaces it."""
Request = Mapping[str, Any]
Answer = Callable[[BinaryIO, Request], dict[str, Any]]


class Session:
    """The session of one run; subclasses handle further requests, or do additional work.

    Args:
        task: The task, as given by the sandbox.
        agent: The name of the agent in the trajectory.
    """

    def __init__(self, task: Task, agent: str) -> None:
        self.task = task
        self.folder = task.output_dir / FOLDER
        self.trajectory = Trajectory(task, agent)
        self.finished = threading.Event()
        self._submitting, self._running = threading.Lock(), threading.Lock()
        self._submitted_at = 0.0
        self._cells = 0

    def serve(self) -> int:
        """Serve until the session ends; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.finished.set())
        with self.listening():
            self.work()
        return 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Answer requests during a block."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            with address(self.folder) as path:
                server.bind(path)
                Path(path).chmod(0o600)
            server.listen(16)
            self.begin()
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts
                self.trajectory.say("The session ended.", stage="submit")
                self.end()

    def begin(self) -> None:
        """Prepare the session; called before the first request, to be overridden."""

    def work(self) -> None:
        """Wait until the session is over."""
        self.finished.wait()

    def finish(self) -> None:
        """End the session."""
        self.finished.set()

    def end(self) -> None:
        """Remove the session's folder; called after `work`."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self) -> dict[str, Answer]:
        """Return the handler of each kind of request."""
        return {
            "clock": lambda _file, _request: clock(self.task),
            "execute": self._execute,
            "execute-program": self._execute_program,
            "finish": lambda _file, _request: {"message": "The session is ending; the submission will be graded."},
            "read": self._read,
            "submit": self._submit,
            "write": self._write,
            "validate": lambda _file, _request: self.task.verdict(),
        }

    def run_text(self, text: str, cell: Path | None, timeout: float) -> Finished:
        """Run a command in `sh`, or the file of a Python cell."""
        command = text if cell is None else f"{shlex.quote(sys.executable)} {shlex.quote(str(cell))}"
        return run(command, cwd=self.task.output_dir, timeout=timeout, rest=False)

    def run_program(
        self, arguments: Sequence[str], folder: Path, env: Mapping[str, str], content: bytes, timeout: float | None
    ) -> Completed:
        """Run a program; arguments are those of `workspace.execute`."""
        return workspace.execute(arguments, cwd=folder, env=env, content=content, timeout=timeout)

    # Requests, each in a separate thread.

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
            if request["do"] != "submit" and int(request.get("size") or 0) > MAX_CONTENT:
                return
            answer = self.answers()[request["do"]](file, {**request, "connection": connection})
            content = answer.pop("content", b"")
            line = json.dumps({**answer, "size": len(content)} if content else answer).encode() + b"\n"
            connection.sendall(line + content)  # in one call: a client may leave after reading the line
            if request["do"] == "finish":
                self.finish()

    def _execute(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        """Run a command in `sh`, or code in a new Python process, in the output folder; each code cell is saved.

        Processes that a command leaves in its process group are killed.
        """
        text = file.read(int(request["size"])).decode("utf-8", "replace")
        with self._running:
            cell: Path | None = None
            if request["language"] == "python":
                self._cells += 1
                cell = self.task.output_dir / "code" / f"cell_{self._cells:03d}.py"
                write(cell, text)
            started = time.monotonic()
            ended = self.run_text(text, cell, float(request["timeout"]))
            seconds = round(time.monotonic() - started, 3)
        self.trajectory.act(
            "",
            request["language"],
            {"command": text},
            ended.output,
            exit_code=ended.code,
            is_buggy=ended.code != 0,
            seconds=seconds,
        )
        return {"code": ended.code, "output": ended.output}

    def _execute_program(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        """Run a program, concurrently with others; a line of JSON has its arguments, and standard input follows."""
        head, _, content = file.read(int(request["size"])).partition(b"\n")
        program = json.loads(head)
        started = time.monotonic()
        folder = self.task.output_dir / program["cwd"]
        ended = self.run_program(program["arguments"], folder, program["env"], content, request["timeout"])
        shown = (ended.stdout + ended.stderr).decode("utf-8", "replace")
        self.trajectory.act(
            "",
            "exec",
            {"command": shlex.join(program["arguments"])[:MAX_TEXT]},
            shown,
            exit_code=ended.code,
            is_buggy=ended.code != 0,
            seconds=round(time.monotonic() - started, 3),
        )
        return {"code": ended.code, "stdout": len(ended.stdout), "content": ended.stdout + ended.stderr}

    def _read(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        path = json.loads(file.read(int(request["size"])))
        try:
            return {"content": workspace.read(self.task.output_dir / path)}
        except OSError as error:
            return {"errno": error.errno, "error": error.strerror}

    def _write(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        """Write a file; a line of JSON contains its path, and the content follows."""
        if int(request["size"]) > workspace.MAX_FILE:
            return {"errno": errno.EFBIG, "error": "File too large"}
        head, _, content = file.read(int(request["size"])).partition(b"\n")
        path = json.loads(head)
        try:
            workspace.write(self.task.output_dir / path, content)
        except OSError as error:
            return {"errno": error.errno, "error": error.strerror}
        self.trajectory.act("", "write_file", {"path": path}, f"{len(content)} bytes")
        return {}

    def _submit(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        target = self.task.submission
        with self._submitting:
            if request.get("size") is not None:
                part = target.with_name(f".{target.name}.part")
                try:
                    with part.open("wb") as copy:
                        remaining = int(request["size"])
                        while remaining and (block := file.read(min(remaining, _BLOCK))):
                            remaining -= copy.write(block)
                except OSError as error:
                    part.unlink(missing_ok=True)
                    return {"valid": False, "message": f"{target.name} can't be written: {error.strerror}."}
                if remaining:
                    part.unlink(missing_ok=True)
                    return {"valid": False, "message": "The transfer was interrupted; nothing was submitted."}
                time.sleep(max(0.0, self._submitted_at + _BETWEEN_SUBMISSIONS - time.monotonic()))
                part.replace(target)
                self._submitted_at = time.monotonic()
            answer = self.task.verdict()
            fields = {"file": request.get("name") or target.name}
            self.trajectory.act("", "submit", fields, answer["message"], stage="submit", is_buggy=not answer["valid"])
            return answer


def clock(task: Task) -> dict[str, Any]:
    """Return the remaining seconds, and a sentence that states them."""
    seconds_left = task.end - time.time()
    seconds_left = min(max(0.0, seconds_left), task.time_limit)  # leave a moment for the startup
    hours, minutes, seconds = int(seconds_left) // 3600, int(seconds_left) // 60 % 60, int(seconds_left) % 60
    message = f"{hours}:{minutes:02d}:{seconds:02d} left of {task.time_limit / 60:.0f} minutes."
    return {"message": message, "left": seconds_left}


def agent_name(task: Task) -> str:
    """Return the name of the agent in the trajectory."""
    return str(task.options.get("name") or "session")


if __name__ == "__main__":
    task = Task()
    sys.exit(Session(task, agent_name(task)).serve())
