"""Run agents as plain processes in this interpreter's environment, without isolation; use it only for agents that you
trust."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
from mleredux.errors import SandboxError, file_errors
from mleredux.plugin.files import plain_path
from mleredux.plugin.sandbox import BuildRequest, Built, Capabilities, Exit, Finding, Handle, Launch, Layout, Usage

# The shell outlives mleredux, and records how the agent ended.
_RUN = 'ulimit -f "$1"; shift; "$@" & echo $! > "$0/agent"; wait $!; code=$?; echo $code > "$0/exit"; exit $code'


class PlainSandbox:
    """Implements the protocol of sandboxes (`docs/reference/sandboxes.md`)."""

    id = "plain"
    title = "Plain processes on this machine; no isolation"
    capabilities = Capabilities(isolated=False, builds=("interpreter",))

    def check(self) -> list[Finding]:
        """Check whether the sandbox works on this machine."""
        posix = os.name == "posix"
        return [Finding("plain sandbox", posix, f"Agents run with {sys.executable}.", None if posix else "Use Linux.")]

    def build(self, request: BuildRequest) -> Built:
        """Build nothing: the environment already exists."""
        request.log.write_text("Nothing is built.\n", encoding="utf-8")
        return Built(f"plain:{sys.version}", sys.executable, cached=True)

    def layout(self, launch: Launch) -> Layout:
        """Return the real folders, or links to them: agents use paths in commands, and sockets in temporary folders."""
        task, output = plain_path(launch.task_dir), plain_path(launch.output_dir)
        scratch = plain_path(launch.scratch_dir, longest=48)
        folders = (str(task), str(task / "data"), str(output), str(scratch))
        return Layout(*folders, launch.validate_url, launch.gateway_url)

    def start(self, launch: Launch) -> Handle:
        """Start the agent below a shell."""
        data = launch.task_dir / "data"
        if not data.is_symlink():
            data.rmdir()
            data.symlink_to(launch.data_dir.resolve())
        for name in ("agent", "exit", "shell"):
            (launch.control_dir / name).unlink(missing_ok=True)
        path = f"{plain_path(Path(sys.executable).parents[1])}/bin:/usr/local/bin:/usr/bin:/bin"
        env = {"PATH": path, "HOME": str(launch.scratch_dir), **launch.env, "plain_sandbox_run": _mark(launch)}
        command = ["sh", "-c", _RUN, str(launch.control_dir), str(launch.limits.disk_mb * 2048), *launch.command]
        with file_errors(SandboxError, "The agent can't be started"), launch.log.open("ab") as log:
            shell = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=launch.output_dir,
                start_new_session=True,
            )  # fmt: skip
        (launch.control_dir / "shell").write_text(str(shell.pid))
        return PlainHandle(launch, psutil.Process(shell.pid))

    def attach(self, launch: Launch) -> Handle | None:
        """Return the agent if its shell still runs, or has recorded how the agent ended."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            shell = psutil.Process(int((launch.control_dir / "shell").read_text()))
            if shell.environ().get("plain_sandbox_run") == _mark(launch):
                return PlainHandle(launch, shell)
        return PlainHandle(launch, None) if (launch.control_dir / "exit").exists() else None

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Kill processes of this owner's runs that are no longer supervised; return the ids of these runs."""
        left = {mark: processes for mark, processes in _marked().items() if mark.startswith(f"{owner} ")}
        ended = {run_id for mark in left if not alive(run_id := mark.partition(" ")[2])}
        for run_id in ended:
            for process in left[f"{owner} {run_id}"]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        return sorted(ended)


class PlainHandle:
    """A shell and its descendants."""

    def __init__(self, launch: Launch, shell: psutil.Process | None) -> None:
        self._control, self._shell, self._mark = launch.control_dir, shell, _mark(launch)
        self.id = (self._control / "shell").read_text()
        self.started_at = (self._control / "shell").stat().st_mtime

    def poll(self) -> Exit | None:
        """Return how the agent ended, or None while it runs."""
        if self._shell is not None and self._shell.is_running() and self._shell.status() != psutil.STATUS_ZOMBIE:
            return None
        with contextlib.suppress(OSError, ValueError):
            code = int((self._control / "exit").read_text())
            return Exit(None, code - 128) if code > 128 else Exit(code)
        return Exit(None, 9)

    def usage(self) -> Usage:
        """Return the resources that all descendants of the shell use."""
        memory, processes = 0, self._below()
        for process in processes:
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        return Usage(memory_mb=memory / 2**20, processes=len(processes))

    def terminate(self) -> None:
        """Send SIGTERM to the agent."""
        with contextlib.suppress(OSError, ValueError):
            if self.poll() is None:
                os.kill(int((self._control / "agent").read_text()), 15)

    def kill(self) -> None:
        """Send SIGKILL to all descendants of the shell, which then records the exit code."""
        while processes := self._below():
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(processes, 0.2)

    def close(self) -> None:
        """Kill remaining processes, and wait for the shell."""
        self.kill()
        if self._shell is not None:
            with contextlib.suppress(psutil.Error):
                self._shell.wait(5)

    def _below(self) -> list[psutil.Process]:
        """Return all processes of the agent except the shell, including detached ones."""
        processes = _marked().get(self._mark, [])
        return [process for process in processes if self._shell is None or process.pid != self._shell.pid]


def _mark(launch: Launch) -> str:
    return f"{launch.owner} {launch.run_id}"


def _marked() -> dict[str, list[psutil.Process]]:
    """Return processes of agents by the mark in their environment, which child processes inherit."""
    processes_by_mark: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if (mark := process.environ().get("plain_sandbox_run")) and process.status() != psutil.STATUS_ZOMBIE:
                processes_by_mark.setdefault(mark, []).append(process)
    return processes_by_mark


sandbox = PlainSandbox()
