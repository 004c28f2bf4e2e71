"""Agents started by a launcher that outlives this program: starting, finding and sweeping them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from mleredux._core.protocols import Exit, Handle, Launch, Usage
from mleredux._core.sandboxes.processes import birth, contained, end_family, family, is_alive, members, proportional
from mleredux._core.store.files import read_record, write_atomically
from mleredux.errors import SandboxError, file_errors

_LAUNCHER = Path(__file__).parents[1] / "launcher.py"
_FILE_SLACK = 8 << 20
_KILL_SECONDS = 5
_READINGS = 10
_OWNER_VARIABLE = "MLEREDUX_OWNER"
_RUN_VARIABLE = "MLEREDUX_RUN_ID"


def start_launcher(
    launch: Launch, command: Sequence[str], environment: Mapping[str, str], *, in_container: bool = False
) -> Handle:
    """Start a command for an agent with a launcher, in the output folder, with limits for each process.

    Args:
        launch: The agent's launch.
        command: The command to execute.
        environment: All environment variables of the command.
        in_container: Whether the command creates a container with its own PID namespace: if so, only processes in that
            namespace count as the agent's, and a separate process writes the command's output, received through a pipe,
            to the log.

    Raises:
        SandboxError: The command can't be started.
    """
    _forget(launch.control_dir)
    instructions = {
        "command": list(command),
        "cwd": str(launch.output_dir),
        "limits": resource_limits(launch),
        "pipe": in_container,
        "parent": os.getpid() if launch.bound else None,
        "grace": launch.limits.grace,
    }
    (launch.control_dir / "launch.json").write_text(json.dumps(instructions), encoding="utf-8")
    started_at = time.time()
    with file_errors(SandboxError, "The agent's process could not be started"), launch.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCHER), str(launch.control_dir)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**environment, _OWNER_VARIABLE: launch.owner, _RUN_VARIABLE: launch.run_id},
        )
    born = birth(process.pid) or 0.0  # if it has ended, a value that no process has
    noted = {"pid": process.pid, "birth": born, "started_at": started_at, "contained": in_container}
    write_atomically(launch.control_dir / "process.json", json.dumps(noted))
    return _ProcessHandle(launch, noted, process)


def attach_launcher(launch: Launch) -> Handle | None:
    """Return the agent if its launcher is alive or has recorded how the agent ended."""
    noted = read_record(launch.control_dir / "process.json", (FileNotFoundError,))
    if not noted:
        return None
    handle = _ProcessHandle(launch, noted, None)
    # Without either, the launcher was killed externally (by a sweep or a reboot), not by the agent.
    return handle if handle.alive() or (launch.control_dir / "exit.json").exists() else None


def sweep_launchers(owner: str, alive: Callable[[str], bool]) -> list[str]:
    """End processes of this owner's runs that are no longer supervised; return the ids of these runs.

    Args:
        owner: The identity of the store of the runs.
        alive: Returns whether the run with an id is supervised.
    """
    ended = set()
    for run_id, processes in _by_run(owner).items():
        if alive(run_id):
            continue
        ended.add(run_id)
        for process in processes:
            if (control := _control_of(process)) is not None:
                _forget(control)  # this exit status is not the agent's own
                end_family(partial(family, process.pid), process)
        end_family(partial(_of_run, owner, run_id))
    return sorted(ended)


class _ProcessHandle:
    """A launcher and its descendants."""

    def __init__(self, launch: Launch, noted: dict[str, Any], popen: subprocess.Popen[bytes] | None) -> None:
        self.id = str(noted["pid"])
        self.started_at = float(noted["started_at"])
        self._pid, self._birth, self._popen = int(noted["pid"]), noted["birth"], popen
        self._launch, self._contained = launch, bool(noted.get("contained"))
        self._exit_path = launch.control_dir / "exit.json"
        self._cpu: dict[int, float] = {}
        self._seen: dict[int, float] = {}

    def poll(self) -> Exit | None:
        """Return how the agent ended, as recorded by the launcher."""
        if self.alive():
            return None
        ended = read_record(self._exit_path, (FileNotFoundError,))
        if not ended:
            return Exit(None, signal.SIGKILL)  # the launcher itself was killed
        # The init of a container exits with 128 + N if signal N ended the agent, as a shell does.
        if self._contained and 128 < (code := ended["code"] or 0) <= 128 + signal.NSIG:
            return Exit(None, code - 128)
        return Exit(ended["code"], ended["signal"])

    def usage(self) -> Usage:
        """Return current memory and processes of the whole tree, and CPU time of all processes seen so far.

        Resident memory is quick to read, but counts pages that forks share once per process. Only if the sum exceeds
        the limit, each shared page is divided among its processes.
        """
        processes = members(self._pid) if birth(self._pid) == self._birth else []
        if self._contained:
            processes = [process for process in processes if contained(process.pid)]
        self._cpu |= {process.pid: process.cpu_seconds for process in processes}
        self._seen |= {process.pid: process.born for process in processes}
        sizes, limit = [process.memory for process in processes], self._launch.limits.memory_mb << 20
        memory = sum(sizes)
        for _ in range(_READINGS):
            if memory <= limit:
                break
            # A process that ends moves its share to others; one that starts takes shares before it is listed, so that
            # the sum may be less than the largest process has.
            memory = max(min(limit, max(sizes)), min(memory, sum(map(proportional, processes))))
        return Usage(memory / 2**20, sum(self._cpu.values()), len(processes))

    def terminate(self) -> None:
        """Send SIGTERM to the agent's process group, through the launcher."""
        if self.alive():
            _send(self._pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to all descendants of the launcher, which then records the exit and ends."""
        until = time.monotonic() + _KILL_SECONDS
        while self.alive() and time.monotonic() < until:  # repeated: the launcher may not have started the agent yet
            end_family(self._ended_first, None if self._contained else next(iter(self._tree()), None))
            _send(self._pid, signal.SIGCONT)  # the agent may have stopped it
            time.sleep(0.01)
        if self.alive():
            _send(self._pid, signal.SIGKILL)
        self._end_orphans()

    def close(self) -> None:
        """End the launcher, too."""
        self.kill()
        if self._popen is not None:
            try:
                self._popen.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        elif self.alive():
            _send(self._pid, signal.SIGKILL)

    def alive(self) -> bool:
        """Return whether the launcher is running."""
        return bool(self._tree()) if self._popen is None else self._popen.poll() is None

    def _ended_first(self) -> list[psutil.Process]:
        """Return all descendants of the launcher except the log writer, a fork that ends once it has read
        everything.
        """
        return [process for process in self._tree()[1:] if not self._contained or _control_of(process) is None]

    def _end_orphans(self) -> None:
        """End orphans of an agent that killed its launcher; they are recognized by earlier records or by their
        environment.
        """
        if self._exit_path.exists():
            return

        def orphans() -> list[psutil.Process]:
            seen = [process for pid, born in self._seen.items() if birth(pid) == born for process in family(pid)]
            return [*seen, *_of_run(self._launch.owner, self._launch.run_id)]

        end_family(orphans)

    def _tree(self) -> list[psutil.Process]:
        """Return the launcher, followed by all its descendants."""
        return family(self._pid) if birth(self._pid) == self._birth else []


def _by_run(owner: str) -> dict[str, list[psutil.Process]]:
    """Return the live processes of an owner's runs, by run, identified by their environment."""
    by_run: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get(_OWNER_VARIABLE) == owner and _RUN_VARIABLE in environment and is_alive(process):
                by_run.setdefault(environment[_RUN_VARIABLE], []).append(process)
    return by_run


def _of_run(owner: str, run_id: str) -> list[psutil.Process]:
    return _by_run(owner).get(run_id, [])


def _control_of(process: psutil.Process) -> Path | None:
    """Return the control folder of a launcher; None for any other process."""
    try:
        command = process.cmdline()
    except psutil.Error:
        return None
    return Path(command[-1]) if len(command) > 2 and Path(command[-2]).name == _LAUNCHER.name else None


def _forget(control: Path) -> None:
    for name in ("exit.json", "process.json"):
        (control / name).unlink(missing_ok=True)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def resource_limits(launch: Launch) -> dict[str, int]:
    """Return hard limits as a backstop; the supervisor watches memory and processes of the whole tree."""
    memory = launch.limits.memory_mb * 2**20
    return {
        "RLIMIT_CORE": 0,
        # A little more than the limit, so that a process that reaches the limit is known to have used it up.
        "RLIMIT_FSIZE": launch.limits.disk_mb * 2**20 + _FILE_SLACK,
        "RLIMIT_DATA": 2 * memory + 2**29,
    }
