"""Sessions in this program: each of their commands is a process with the agent's limits, and nothing waits in between.

A process that has imported what agents' code usually imports is forked for each command (`mleredux._core.forkserver`),
so that neither a session nor a step starts an interpreter. It has the variables that all agents have, and no others.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mleredux._core import forkserver
from mleredux._core.protocols import Exit, Handle, Launch, Usage
from mleredux._core.sandboxes.launched import resource_limits
from mleredux._core.sandboxes.processes import members, stat

_LIBRARIES = ("numpy", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.pipeline")
_KILL, _FOREVER = signal.SIGKILL, 1e6


def host(launch: Launch, command: Sequence[str], environment: dict[str, str], base: dict[str, str]) -> Handle | None:
    """Open the session of a launch in this program; None if it has to run in a separate process.

    Args:
        launch: The agent's launch.
        command: The command: `python -m MODULE`; `host(environment, call)` of the module that this one names as
            `HOSTED` returns the session.
        environment: All variables of the agent.
        base: Those that all agents have.
    """
    own = any(name.startswith(forkserver.INHERITED) and base.get(name) != environment[name] for name in environment)
    if not launch.bound or own or tuple(command[:-1]) != ("python", "-m") or sys.platform != "linux":
        return None
    if (module := getattr(importlib.import_module(command[-1]), "HOSTED", None)) is None:
        return None
    threads = forkserver.ONE_THREAD if launch.limits.cpus <= 1 else {}
    steps = _Steps(module, resource_limits(launch), {**threads, **environment}, {**threads, **base})
    return _Hosted(importlib.import_module(module).host(steps.environment, steps.call), steps)


class _Steps:
    """The commands of a session.

    Args:
        module: The module of the session.
        limits: The limits of each process.
        environment: The variables of commands.
        base: The variables of the process that is forked.
    """

    def __init__(self, module: str, limits: dict[str, int], environment: dict[str, str], base: dict[str, str]) -> None:
        self.environment, self.running = environment, set[forkserver.Child]()
        self._module, self._limits, self._base = module, limits, base
        self._bare = ("mleredux._core.launcher", module)
        forkserver.warm(base, (*self._bare, *_LIBRARIES))
        self._cpu: dict[int, float] = {}

    def call(
        self,
        request: Mapping[str, Any],
        files: Sequence[int],
        folder: str,
        env: Mapping[str, str],
        seconds: float | None,
    ) -> int | None:
        """Call the module's `work(request, files)` in a process with limits; return its exit code, or None if it took
        longer than these seconds. All processes that it started have ended, too.

        Args:
            request: The request, JSON-serializable.
            files: Open files, of which the last becomes standard error.
            folder: The working directory.
            env: More variables.
            seconds: The time limit; None: as long as the session lasts.
        """
        child = forkserver.start(
            "mleredux._core.launcher:work",
            {**request, "module": self._module, "limits": self._limits},
            folder=folder,
            errors=files[-1],
            files=files[:-1],
            environment={**self.environment, **env},
            server=self._base,
            modules=(*self._bare, *(_LIBRARIES if request.get("libraries") else ())),
        )
        self.running.add(child)
        try:
            ended = child.wait(_FOREVER if seconds is None else seconds)
        finally:
            child.close()
            self.running.discard(child)
        return child.code if ended else None

    def usage(self) -> Usage:
        """Return the memory of all running commands, without what they share with the process they are forked from."""
        memory = count = 0
        for child in tuple(self.running):
            found, guard = members(child.pid), stat(child.pid)
            self._cpu |= {one.pid: one.cpu_seconds for one in found}
            memory += sum(one.memory for one in found)
            if guard and any(one.stack == guard.stack != 0 for one in found):
                memory -= guard.memory
            count += len(found)
        return Usage(max(0, memory) / 2**20, sum(self._cpu.values()), count)


class _Hosted:
    """A session in this program."""

    def __init__(self, session: Any, steps: _Steps) -> None:
        self.id, self.started_at = str(os.getpid()), time.time()
        self._session, self._steps = session, steps
        self._killed = False
        self._open = contextlib.ExitStack()
        self._open.enter_context(session.listening())

    def wait(self, seconds: float) -> None:
        """Wait until the session ends, but no longer than this."""
        self._session.finished.wait(seconds)

    def poll(self) -> Exit | None:
        """Return how the session ended."""
        if not self._session.finished.is_set():
            return None
        return Exit(None, _KILL) if self._killed else Exit(0)

    def usage(self) -> Usage:
        """Return the use of all running commands."""
        return self._steps.usage()

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
        while self._steps.running:
            for child in tuple(self._steps.running):
                child.kill()
            time.sleep(0.005)
