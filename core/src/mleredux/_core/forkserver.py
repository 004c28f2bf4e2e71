"""Child processes, forked from a server process that has already imported the modules needed for grading.

Importing pandas for each submission would cost more than grading it. So one process imports it once, before anything
written by an agent is read, and forks for each request; it reads nothing but its parent's requests. A guard process
between the two ends the child, and all processes that the child started, when the parent closes or dies.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mleredux._core.plain import plain_path
from mleredux._core.plugins.discovery import LOAD_VARIABLE, entry_points, names_in

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

PRELOADED = (
    "pandas",
    "mleredux._core.plugins.loader",
    "mleredux._core.stages.grade",
    "mleredux._core.submissions.validation",
    "mleredux.plugin.grader",
    "mleredux.plugin.task",
)
"""Modules that are imported before the first fork, with those of the entry-point group `mleredux.preloaded`."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables that make sums have the same order on every machine, and keep concurrent children from competing for
threads."""
_IDLE_SECONDS = 60.0
_MOST_FILES = 8
_ACKNOWLEDGED = b"\n"
_INHERITED = ("PYTHON", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "MKL_")
"""Prefixes of variables that take effect when a process starts: different values need another server."""

_lock = threading.Lock()
_servers: dict[Any, tuple[socket.socket, subprocess.Popen[bytes]]] = {}


class Child:
    """A function that runs in a separate process, without this process's input and output."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.code: int | None = None

    def wait(self, seconds: float) -> bool:
        """Wait until the child has ended; return False if it has not within this many seconds."""
        if self.code is None:
            if not select.select([self._connection], [], [], seconds)[0]:
                return False
            said = self._connection.recv(64)
            self.code = int(said) if said else -signal.SIGKILL
        return True

    def close(self) -> None:
        """End the child and all processes that it started."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        while not self.wait(_IDLE_SECONDS):
            pass
        self._connection.close()


def start(
    function: str,
    request: Mapping[str, Any],
    *,
    folder: str,
    errors: int,
    files: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Call `module:function(request, files)` in a child process.

    Args:
        function: The function to call.
        request: The request, JSON-serializable; `parent` is added, the id of the process with which the child must end.
        folder: The child's working directory.
        errors: The open file that becomes the child's standard error.
        files: Open files passed to the function.
        environment: The child's variables, of which `PYTHONPATH` is its import path; None: `child_environment()`.

    Raises:
        OSError: No process can be started.
    """
    environment = dict(child_environment() if environment is None else environment)
    task = {"function": function, "request": request, "environment": environment, "folder": folder}
    for last in (False, True):
        ours, theirs = socket.socketpair()
        with theirs:
            control = _control(environment)
            with contextlib.suppress(OSError):  # it was idle, and has just ended
                socket.send_fds(control, [b"\0"], [theirs.fileno(), errors, *files])
        with contextlib.suppress(OSError):
            ours.sendall(json.dumps(task).encode() + b"\n")
            if ours.recv(1) == _ACKNOWLEDGED:
                return Child(ours)
        ours.close()
        if last:
            break
        _forget(control)
    raise OSError("the process that starts graders ended")


def same_plugins(catalogue: Catalogue) -> dict[str, Any]:
    """Return the arguments of a child's `Catalogue` with the same plugins, in a form that is valid in any folder."""
    names = dict.fromkeys((*catalogue.load, *sorted(names_in(LOAD_VARIABLE))))
    load = [str(Path(name).resolve()) if Path(name).exists() else name for name in names]
    return {"block": catalogue.block, "load": load}


def child_environment() -> dict[str, str]:
    """Return the current environment with this process's import path, without the requested plugins."""
    environment = {name: value for name, value in os.environ.items() if name != LOAD_VARIABLE}
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    importable = dict.fromkeys(str(plain_path(path) if os.pathsep in str(path) else path) for path in folders)
    return {**ONE_THREAD, **environment, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(importable)}


def warm() -> None:
    """Start the server now, so that it imports modules while the caller waits for something else."""
    _control(child_environment())


def _key(environment: Mapping[str, str]) -> Any:
    given = (item for item in environment.items() if item[0].startswith(_INHERITED) and item[0] != "PYTHONPATH")
    return os.getpid(), *sorted(given)


def _control(environment: Mapping[str, str]) -> socket.socket:
    """Return the connection to the server, which is started if necessary."""
    with _lock:
        key = _key(environment)
        if key not in _servers:
            ours, theirs = socket.socketpair()
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    cwd="/",
                    start_new_session=True,
                    env=dict(environment),
                )
            _servers[key] = ours, process
        return _servers[key][0]


def _forget(control: socket.socket) -> None:
    """Drop a server, unless another thread already has."""
    with _lock:
        for key, (ours, process) in list(_servers.items()):
            if ours is control:
                del _servers[key]
                ours.close()
                process.wait()


def serve(control: socket.socket) -> None:
    """Fork for each request, until the parent ends or the server has been idle for a while."""
    gc.disable()  # nothing imported so far is garbage
    if sys.platform == "linux":  # on other platforms, forks of such a process may crash
        for name in (*PRELOADED, *(point.value for point in entry_points("mleredux.preloaded"))):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    gc.enable()
    while True:
        asked = select.select([control], [], [], _IDLE_SECONDS)[0]
        busy = _reap()
        if not asked:
            if busy:
                continue
            return
        told, given, *_ = socket.recv_fds(control, 1, _MOST_FILES)
        if not told:
            return
        if os.fork() == 0:
            control.close()
            _guard(socket.socket(fileno=given[0]), given[1], given[2:])
        for file in given:
            os.close(file)


def _reap() -> bool:
    """Reap guards that have ended; return whether others remain."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _guard(connection: socket.socket, errors: int, files: Sequence[int]) -> NoReturn:
    """Fork the child, end it with its group when the connection is closed, and report its exit status."""
    told = json.loads(connection.makefile("rb").readline() or b"null")
    if told is None:
        os._exit(1)
    told["request"]["parent"] = os.getpid()
    child = os.fork()
    if child == 0:
        connection.close()
        _work(told, errors, files)
    ended, lock = False, threading.Lock()

    def end() -> None:
        with lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if not ended:
                os.killpg(child, signal.SIGKILL)
                os.kill(child, signal.SIGKILL)

    def watch() -> None:
        connection.recv(1)
        end()

    connection.sendall(_ACKNOWLEDGED)
    threading.Thread(target=watch, daemon=True).start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    end()  # so that its own children end too
    with lock:
        ended, (_, status) = True, os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _work(told: Mapping[str, Any], errors: int, files: Sequence[int]) -> NoReturn:
    """Run as the child process."""
    code = 1
    try:
        os.setsid()
        os.dup2(errors, 2)
        os.close(errors)
        os.environ.clear()
        os.environ.update(told["environment"])
        before = told["environment"].get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = [*before, *(entry for entry in sys.path if entry not in before)]
        importlib.invalidate_caches()
        os.chdir(told["folder"])
        module, _, name = told["function"].partition(":")
        getattr(importlib.import_module(module), name)(told["request"], files)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # tearing down the imported modules takes as long as many forks
