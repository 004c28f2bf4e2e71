"""The process sandbox: agents as processes of this machine.

Not a security boundary. The agent has a scrubbed environment, a process group and limits of its own, but it runs as the
same user on the same file system, so it could read the answers. For agents you trust; for others there is Docker.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from mleredux._core.capabilities import Capabilities
from mleredux._core.plugins.entry_points import installation
from mleredux._core.protocols import BuildRequest, Built, Exit, Finding, Handle, Launch, Layout, Usage
from mleredux._core.sandboxes.environments import find_environment, packages_of
from mleredux._core.sandboxes.processes import birth, end_family, living, members
from mleredux._core.store.files import write_atomically
from mleredux.errors import SandboxError

_LAUNCHER = Path(__file__).with_name("launcher.py")
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
_FILE_SLACK = 8 << 20
_KILL_SECONDS = 5
_OWNER_VARIABLE = "MLEREDUX_OWNER"
_RUN_VARIABLE = "MLEREDUX_RUN_ID"


class ProcessSandbox:
    """Runs agents with this interpreter's environment."""

    id = "process"
    title = "Processes of this machine; no isolation"
    capabilities = Capabilities(gpus=True)

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
                hint="Install the agent's package, or use a sandbox that builds one, such as docker.",
            )
        if (folder := request.agent.build.folder) is not None:
            request.log.touch()
            request.progress("finding the agent's packages")
            python, cached = find_environment(folder, request)
            with request.log.open("a", encoding="utf-8") as log:
                log.write(f"The process sandbox uses {python}.\n")
            own = None if str(python) == sys.executable else python
            return Built(f"process:sha256:{_environment_digest(own)}", str(python), cached=cached)
        request.log.write_text(f"The process sandbox uses {sys.executable}; nothing was built.\n", encoding="utf-8")
        return Built(f"process:sha256:{_environment_digest()}", sys.executable, cached=True)

    def layout(self, launch: Launch) -> Layout:
        """The real folders."""
        return Layout(
            task=str(launch.task_dir),
            data=str(launch.task_dir / "data"),
            output=str(launch.output_dir),
            scratch=str(launch.scratch_dir),
            validate_url=launch.validate_url,
            gateway_url=launch.gateway_url,
        )

    def start(self, launch: Launch) -> Handle:
        """Start the agent below a launcher that survives this program."""
        data = launch.task_dir / "data"
        if not data.is_symlink():
            data.rmdir()
            data.symlink_to(launch.data_dir.resolve(), target_is_directory=True)
        _forget(launch.control_dir)
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment |= {
            "PATH": os.pathsep.join([str(Path(launch.built.reference).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(launch.scratch_dir),
            "TMPDIR": str(launch.scratch_dir),
            "PYTHONUNBUFFERED": "1",
            **launch.env,
            _OWNER_VARIABLE: launch.owner,
            _RUN_VARIABLE: launch.run_id,
        }
        (launch.control_dir / "launch.json").write_text(
            json.dumps(
                {
                    "command": _command(launch, environment),
                    "cwd": str(launch.output_dir),
                    "limits": _resource_limits(launch),
                }
            ),
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
        noted = {"pid": process.pid, "birth": birth(process.pid), "started_at": time.time()}
        write_atomically(launch.control_dir / "process.json", json.dumps(noted))
        return _ProcessHandle(launch, noted, process)

    def attach(self, launch: Launch) -> Handle | None:
        """The agent where its launcher lives, or has written how it ended."""
        try:
            noted = json.loads((launch.control_dir / "process.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        handle = _ProcessHandle(launch, noted, None)
        # Without either, the launcher was ended from outside (by a sweep, by a reboot): not the agent's doing.
        return handle if handle.alive() or (launch.control_dir / "exit.json").exists() else None

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """End processes of this owner's runs that nobody supervises any more."""
        ended = set()
        for run_id, processes in _by_run(owner).items():
            if alive(run_id):
                continue
            ended.add(run_id)
            for process in processes:
                if (control := _control_of(process)) is not None:
                    _forget(control)  # how it ends now is not how the agent ended
                    end_family(partial(_below, process))
            end_family(partial(_of_run, owner, run_id))
        return sorted(ended)


class _ProcessHandle:
    """A launcher, and everything below it."""

    def __init__(self, launch: Launch, noted: dict[str, Any], popen: subprocess.Popen[bytes] | None) -> None:
        self.id = str(noted["pid"])
        self.started_at = float(noted["started_at"])
        self._pid, self._birth, self._popen = int(noted["pid"]), noted["birth"], popen
        self._launch = launch
        self._exit_path = launch.control_dir / "exit.json"
        self._cpu: dict[int, float] = {}
        self._seen: dict[int, float] = {}

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
        found = members(self._pid) if birth(self._pid) == self._birth else []
        self._cpu |= {one.pid: one.cpu_seconds for one in found}
        self._seen |= {one.pid: one.born for one in found}
        return Usage(sum(one.memory for one in found) / 2**20, sum(self._cpu.values()), len(found))

    def terminate(self) -> None:
        """SIGTERM to the agent's process group, by way of the launcher."""
        if self.alive():
            _send(self._pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to everything below the launcher; the launcher then writes the end and ends itself."""
        until = time.monotonic() + _KILL_SECONDS
        while self.alive() and time.monotonic() < until:  # again: the launcher may not have started the agent yet
            end_family(lambda: self._tree()[1:])
            _send(self._pid, signal.SIGCONT)  # the agent may have stopped it
            time.sleep(0.01)
        if self.alive():
            _send(self._pid, signal.SIGKILL)
        self._end_orphans()

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
            _send(self._pid, signal.SIGKILL)

    def alive(self) -> bool:
        """Whether the launcher runs."""
        if self._popen is not None:
            return self._popen.poll() is None
        tree = self._tree()
        return bool(tree) and living(tree[0])

    def _end_orphans(self) -> None:
        """An agent that killed its launcher left orphans: known by sight, or by their environment."""
        if self._exit_path.exists():
            return

        def orphans() -> list[psutil.Process]:
            seen = [one for pid, born in self._seen.items() if birth(pid) == born for one in _running(pid)]
            below = [child for process in seen for child in _below(process)]
            return [*seen, *below, *_of_run(self._launch.owner, self._launch.run_id)]

        end_family(orphans)

    def _tree(self) -> list[psutil.Process]:
        """The launcher, then all below it."""
        if birth(self._pid) != self._birth:
            return []
        try:
            root = psutil.Process(self._pid)
        except psutil.Error:
            return []
        return [root, *_below(root)]


def _running(pid: int) -> list[psutil.Process]:
    """A process, unless it has ended."""
    try:
        return [one for one in (psutil.Process(pid),) if living(one)]
    except psutil.Error:
        return []


def _below(process: psutil.Process) -> list[psutil.Process]:
    """All that lives below a process."""
    try:
        return [child for child in process.children(recursive=True) if living(child)]
    except psutil.Error:
        return []


def _by_run(owner: str) -> dict[str, list[psutil.Process]]:
    """Living processes of an owner's runs, known by their environment, by run."""
    found: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get(_OWNER_VARIABLE) == owner and _RUN_VARIABLE in environment and living(process):
                found.setdefault(environment[_RUN_VARIABLE], []).append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _of_run(owner: str, run_id: str) -> list[psutil.Process]:
    return _by_run(owner).get(run_id, [])


def _control_of(process: psutil.Process) -> Path | None:
    """The control folder of a launcher; None of any other process."""
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


def _resource_limits(launch: Launch) -> dict[str, int]:
    """Hard limits as a backstop; memory and processes of the whole tree are watched by the supervisor."""
    memory = launch.limits.memory_mb * 2**20
    return {
        "RLIMIT_CORE": 0,
        # A little more than the limit, so that who reaches it is found to have used it up.
        "RLIMIT_FSIZE": launch.limits.disk_mb * 2**20 + _FILE_SLACK,
        "RLIMIT_DATA": 2 * memory + 2**29,
    }


def _command(launch: Launch, environment: dict[str, str]) -> list[str]:
    """The agent's command. Its own files are copied, so that it can't change those that other runs start from."""
    folder = launch.agent.build.folder
    if folder is None:
        return list(launch.command)
    copy = launch.scratch_dir / "agent"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder.path, copy, symlinks=True)
    place = re.compile(rf"(?<![\w./-]){re.escape(folder.place)}(?![\w.-])")
    for name, value in launch.env.items():
        environment[name] = place.sub(lambda _: str(copy), value)
    return [place.sub(lambda _: str(copy), word) for word in launch.command]


@cache
def _environment_digest(python: Path | None = None) -> str:
    """Identity of an environment and its packages; None: of this interpreter."""
    digest = hashlib.sha256(sys.version.encode())
    for name, version in packages_of(python) if python else _own_packages():
        digest.update(f"{name}=={version}\n".encode())
    return digest.hexdigest()


def _own_packages() -> list[tuple[str, str]]:
    """Names and versions of the packages of this interpreter; cached, as reading them all takes longer than a run."""
    here = installation()
    found = here.remembered("packages")
    if found is None:
        found = sorted({(one.name, one.version) for one in metadata.distributions() if one.name})
        here.remember("packages", found)
    return [(name, version) for name, version in found]


def _importable(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


SANDBOX = ProcessSandbox()
