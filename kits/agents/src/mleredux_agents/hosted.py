"""Sessions in this program: each of their commands is a process with the agent's limits, and nothing waits in between.

A process that has imported what agents' code usually imports is forked for each command (`mleredux._core.forkserver`),
so that neither a session nor a step starts an interpreter. It has the variables that all agents have, and no others.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mleredux._core import forkserver
from mleredux._core.protocols import Exit, Handle, Launch, Usage
from mleredux._core.sandboxes.launched import resource_limits
from mleredux._core.sandboxes.processes import members, stat
from mleredux_agentkit.hosted import HostedSession
from mleredux_agentkit.session import Request
from mleredux_agentkit.task import Task

from mleredux_agents.sessions import stirred
from mleredux_agents.steps import MAX_MESSAGE

_LIBRARIES = ("numpy", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.pipeline")
_BARE = ("mleredux_agents.steps",)
_KILL, _FOREVER = signal.SIGKILL, 1e6
_CANNOT_EXECUTE = 126
_IDLE_SECONDS, _MOMENT = 20.0, 0.1


def host(launch: Launch, environment: dict[str, str], base: dict[str, str]) -> Handle:
    """Open the session of a launch in this program.

    Args:
        launch: The agent's launch.
        environment: All variables of the agent.
        base: Those that all agents have.
    """
    threads = forkserver.ONE_THREAD if launch.limits.cpus <= 1 else {}
    return _Hosted(launch.run_id, resource_limits(launch), {**threads, **environment}, {**threads, **base})


class _Hosted:
    """A session in this program, and its commands.

    Args:
        run: The run.
        limits: The limits of each process.
        environment: The variables of commands.
        base: The variables of the process that is forked.
    """

    def __init__(self, run: str, limits: dict[str, int], environment: dict[str, str], base: dict[str, str]) -> None:
        self.id, self.started_at = str(os.getpid()), time.time()
        self._limits, self._environment, self._base = limits, environment, base
        self._running = dict[forkserver.Child | _Starter, float]()  # with the CPU seconds that were measured last
        self._idle, self._closed, self._used = list[_Starter](), False, 0.0
        self._stirred = stirred[run] = threading.Event()
        self._killed, self._open = False, contextlib.ExitStack()
        forkserver.warm(base, (*_BARE, *_LIBRARIES))
        self._session = HostedSession(Task(environment), self._call, self._stirred)
        self._open.enter_context(self._session.listening())

    def _call(
        self, request: Request, files: Sequence[int], folder: str, env: Mapping[str, str], seconds: float | None
    ) -> int | None:
        """Execute a program or a Python file in a process with limits; return the exit
        code, or None if it took longer than these seconds. By then, all processes that it started have ended, too.

        Args:
            request: The request, JSON-serializable; `program` is a command.
            files: Open files, of which the last becomes standard error; for a program, three.
            folder: The working directory.
            env: More variables.
            seconds: The time limit; None: as long as the session lasts.
        """
        seconds = _FOREVER if seconds is None else seconds
        if "program" in request:
            return self._execute({**request, "folder": folder, "env": dict(env)}, files, seconds)
        modules = (*_BARE, *(_LIBRARIES if request.get("libraries") else ()))
        child = self._fork("work", request, files, folder, env, modules)
        try:
            ended = self._waited(child, seconds)
        finally:
            child.close()
            self._used += self._running.pop(child, 0.0)
        return child.code if ended else None

    def _waited(self, child: forkserver.Child | _Starter, seconds: float) -> bool:
        """Wait until a command has ended; return False if it has not within this many seconds."""
        self._running[child] = 0.0
        if self._closed:
            child.kill()
        if child.wait(min(seconds, _MOMENT)):
            return True
        self._stirred.set()  # its resources must be measured
        return child.wait(max(0.0, seconds - _MOMENT))

    def _fork(
        self,
        function: str,
        request: Request,
        files: Sequence[int],
        folder: str,
        env: Mapping[str, str],
        modules: tuple[str, ...],
    ) -> forkserver.Child:
        return forkserver.start(
            f"mleredux_agents.steps:{function}",
            {**request, "limits": self._limits},
            folder=folder,
            errors=files[-1],
            files=files[:-1],
            environment={**self._environment, **env},
            server=self._base,
            modules=modules,
        )

    def _execute(self, request: Request, files: Sequence[int], seconds: float) -> int | None:
        message = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if len(message) > MAX_MESSAGE:
            os.write(files[-1], b"The command is too long; write it to a file.\n")
            return _CANNOT_EXECUTE
        try:
            starter = self._idle.pop()
        except IndexError:
            starter = _Starter(lambda *theirs: self._fork("execute", {"unguarded": True}, theirs, "/", {}, _BARE))
        try:
            ended = not starter.begin(message, files) or self._waited(starter, seconds)
            code, cpu = starter.end(ended)
        except BaseException:
            starter.close()
            raise
        finally:
            sampled = self._running.pop(starter, 0.0)
        if code is None:  # the program killed the process that had started it
            starter.close()
            code, cpu = -_KILL, sampled
        else:
            starter.used = time.monotonic()
            self._idle.append(starter)
            if self._closed:
                self._end()
        self._used += cpu
        return code if ended else None

    def _end(self) -> None:
        """End all processes; running commands are killed."""
        self._closed = True
        while self._running:
            for child in tuple(self._running):
                child.kill()
            time.sleep(0.005)
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def usage(self) -> Usage:
        """Return the memory of all running commands, without the memory that they share with their parent process.

        As this is called regularly, it also ends processes that have not started a command for a while.
        """
        with contextlib.suppress(IndexError):  # another thread took it
            if self._idle and time.monotonic() - self._idle[0].used > _IDLE_SECONDS:
                self._idle.pop(0).close()
        memory = count = 0
        for child in tuple(self._running):
            processes, guard = members(child.pid), stat(child.pid)
            if child in self._running:
                self._running[child] = max(self._running[child], sum(process.cpu_seconds for process in processes))
            memory += sum(process.memory for process in processes)
            if guard and any(process.stack == guard.stack != 0 for process in processes):
                memory -= guard.memory
            count += len(processes)
        return Usage(max(0, memory) / 2**20, self._used + sum(self._running.values()), count)

    def wait(self, seconds: float) -> bool:
        """Wait until the session has ended or needs attention; return False if neither happens in this many seconds."""
        noticed = self._stirred.wait(seconds)
        self._stirred.clear()
        return noticed

    def poll(self) -> Exit | None:
        """Return how the session ended."""
        end = Exit(None, _KILL) if self._killed else Exit(0)
        return end if self._session.finished.is_set() else None

    def terminate(self) -> None:
        """End the session."""
        self._session.finished.set()

    def kill(self) -> None:
        """End the session at once."""
        self._killed = not self._session.finished.is_set()
        self.close()

    def close(self) -> None:
        """End the session and all its commands."""
        self._session.finished.set()
        self._open.close()
        self._end()


class _Starter:
    """A process that starts programs, one after another, so that no process is forked for each command.

    Args:
        fork: Calls `mleredux_agents.steps.execute` in a child, with these files; the last one is its standard error.

    Attributes:
        pid: The id of the process, which is the parent of programs.
        used: When it last ended a program, by the monotonic clock.
    """

    def __init__(self, fork: Callable[[int, int], forkserver.Child]) -> None:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, Path(os.devnull).open("wb") as nowhere:
            self._child = fork(theirs.fileno(), nowhere.fileno())
        self.pid, self.used = self._child.pid, time.monotonic()

    def begin(self, message: bytes, files: Sequence[int]) -> bool:
        """Start a program; return False if this process has ended."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._connection, [message], files)
            return True
        return False

    def wait(self, seconds: float) -> bool:
        """Wait until the program or this process has ended; return False if neither has within this many seconds."""
        return forkserver.readable(self._connection, seconds)

    def end(self, ended: bool) -> tuple[int | None, float]:
        """End the program, unless it has `ended`; return its exit code, or None if this process has ended, and its CPU
        seconds.
        """
        reply = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if not ended:
                self._connection.send(b"end")
            reply = self._connection.recv(MAX_MESSAGE)
        return tuple(json.loads(reply)) if reply else (None, 0.0)

    def kill(self) -> None:
        """End the process and its descendants, without waiting."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the process and its descendants."""
        self.kill()
        self._connection.close()
        self._child.close()
