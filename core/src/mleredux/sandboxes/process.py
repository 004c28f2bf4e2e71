"""The process sandbox: agents as processes of this machine.

Not a security boundary. The agent has a scrubbed environment, a process group and limits of its own, but it runs as the
same user on the same file system, so it could read the answers. For agents you trust; for others there is Docker.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

import psutil

from mleredux.errors import SandboxError
from mleredux.protocols import BuildRequest, Built, Exit, Finding, Handle, Launch, Layout, Usage

_LAUNCHER = Path(__file__).with_name("launcher.py")
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
_OWNER_VARIABLE = "MLEREDUX_OWNER"
_RUN_VARIABLE = "MLEREDUX_RUN_ID"


class ProcessSandbox:
    """Runs agents with this interpreter's environment."""

    id = "process"
    title = "Processes of this machine; no isolation"
    isolated = False

    def check(self) -> list[Finding]:
        """Always usable where there is a POSIX system."""
        if os.name != "posix":
            return [Finding("process sandbox", False, "This system is not POSIX.", "Use Linux, macOS or WSL.")]
        return [Finding("process sandbox", True, f"Agents run with {sys.executable}; there is no isolation.")]

    def build(self, request: BuildRequest) -> Built:
        """Nothing is built; the identity is that of the interpreter and its packages."""
        missing = [name for name in request.agent.build.packages if not _importable(name)]
        if missing:
            raise SandboxError(
                f"Agent {request.agent.id} needs {', '.join(missing)}, which this environment lacks.",
                hint="Install the agent's package, or use --sandbox docker.",
            )
        digest = hashlib.sha256(sys.version.encode())
        for name, version in sorted(_packages()):
            digest.update(f"{name}=={version}\n".encode())
        request.log.write_text(f"The process sandbox uses {sys.executable}; nothing was built.\n", encoding="utf-8")
        return Built(f"process:sha256:{digest.hexdigest()}", sys.executable, cached=True)

    def layout(self, launch: Launch) -> Layout:
        """The real folders."""
        return Layout(
            task=str(launch.task_dir),
            data=str(launch.task_dir / "data"),
            output=str(launch.output_dir),
            scratch=str(launch.scratch_dir),
            validate_url=launch.validate_url,
        )

    def start(self, launch: Launch) -> Handle:
        """Start the agent below a launcher that survives this program."""
        data = launch.task_dir / "data"
        if not data.is_symlink():
            data.rmdir()
            data.symlink_to(launch.data_dir.resolve(), target_is_directory=True)
        for leftover in ("exit.json", "process.json"):
            (launch.control_dir / leftover).unlink(missing_ok=True)
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment |= {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(launch.scratch_dir),
            "TMPDIR": str(launch.scratch_dir),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **launch.env,
            _OWNER_VARIABLE: launch.owner,
            _RUN_VARIABLE: launch.run_id,
        }
        (launch.control_dir / "launch.json").write_text(
            json.dumps({"command": launch.command, "cwd": str(launch.output_dir), "limits": _resource_limits(launch)}),
            encoding="utf-8",
        )
        try:
            with launch.log.open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_LAUNCHER), str(launch.control_dir)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=environment,
                )
        except OSError as error:
            raise SandboxError(f"The agent's process could not be started: {error}.") from error
        started = psutil.Process(process.pid).create_time()
        (launch.control_dir / "process.json").write_text(
            json.dumps({"pid": process.pid, "created": started, "owner": launch.owner, "run": launch.run_id}),
            encoding="utf-8",
        )
        return _ProcessHandle(launch, process.pid, started, process)

    def attach(self, launch: Launch) -> Handle | None:
        """The agent where its launcher lives, or has written how it ended."""
        try:
            noted = json.loads((launch.control_dir / "process.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        handle = _ProcessHandle(launch, noted["pid"], noted["created"], None)
        return handle if handle.alive() or handle.poll() is not None else None

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """End processes of this owner's runs that nobody supervises any more."""
        ended = set()
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                run_id = environment.get(_RUN_VARIABLE)
                if environment.get(_OWNER_VARIABLE) != owner or run_id is None or alive(run_id):
                    continue
                process.kill()
                ended.add(run_id)
            except psutil.Error:
                continue
        return sorted(ended)


class _ProcessHandle:
    """A launcher, and everything below it."""

    def __init__(self, launch: Launch, pid: int, created: float, popen: subprocess.Popen[bytes] | None) -> None:
        self.id = str(pid)
        self.started_at = created
        self._created, self._popen = created, popen
        self._exit_path = launch.control_dir / "exit.json"
        self._cpu: dict[int, float] = {}

    def poll(self) -> Exit | None:
        """How the agent ended, as the launcher wrote it."""
        if self.alive():
            return None
        try:
            ended = json.loads(self._exit_path.read_bytes())
        except (FileNotFoundError, ValueError):
            return Exit(None, signal.SIGKILL)  # the launcher itself was killed
        return Exit(ended["code"], ended["signal"])

    def usage(self) -> Usage:
        """Memory and processes of the whole tree now, CPU time of all processes seen so far."""
        memory = processes = 0
        for process in self._tree()[1:]:
            try:
                with process.oneshot():
                    memory += process.memory_info().rss
                    times = process.cpu_times()
                    self._cpu[process.pid] = times.user + times.system
                    processes += 1
            except psutil.Error:
                continue
        return Usage(memory / 2**20, sum(self._cpu.values()), processes)

    def terminate(self) -> None:
        """SIGTERM to the agent's process group, by way of the launcher."""
        try:
            if self.alive():
                psutil.Process(int(self.id)).terminate()
        except psutil.Error:
            return

    def kill(self) -> None:
        """SIGKILL to everything below the launcher; the launcher then writes the end and ends itself."""
        for _ in range(100):
            below = self._tree()[1:]
            if not below:
                return
            for process in below:
                try:
                    process.kill()
                except psutil.Error:
                    continue
            time.sleep(0.02)

    def close(self) -> None:
        """End the launcher too."""
        self.kill()
        if self._popen is not None:
            try:
                self._popen.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        elif self.alive():
            psutil.Process(int(self.id)).kill()

    def alive(self) -> bool:
        """Whether the launcher runs."""
        if self._popen is not None:
            return self._popen.poll() is None
        try:
            process = psutil.Process(int(self.id))
            return abs(process.create_time() - self._created) < 0.01 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def _tree(self) -> list[psutil.Process]:
        """The launcher, then all below it."""
        try:
            root = psutil.Process(int(self.id))
            if abs(root.create_time() - self._created) >= 0.01:
                return []
            return [root, *root.children(recursive=True)]
        except psutil.Error:
            return []


def _resource_limits(launch: Launch) -> dict[str, int]:
    """Hard limits as a backstop; memory and processes of the whole tree are watched by the supervisor."""
    memory = launch.limits.memory_mb * 2**20
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": launch.limits.disk_mb * 2**20,
        "RLIMIT_DATA": 2 * memory + 2**29,
    }


def _packages() -> Iterable[tuple[str, str]]:
    return {(found.name, found.version) for found in metadata.distributions() if found.name}


def _importable(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


SANDBOX = ProcessSandbox()
