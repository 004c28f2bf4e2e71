"""Child processes, forked from a server process that has already imported the modules needed for grading.

Importing pandas for each submission would cost more than grading it. So one process imports it once, before anything
written by an agent is read, and forks for each request; it reads nothing but its parent's requests. It imports pandas
for the first request that will read tables, or for the second one. A guard process
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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mleredux._core.launcher import PR_SET_CHILD_SUBREAPER, end_all, prctl
from mleredux._core.plain import plain_path
from mleredux._core.plugins.discovery import LOAD_VARIABLE, entry_points, names_in

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux.models import Task

PRELOADED = (
    "mleredux._core.plugins.loader",
    "mleredux._core.stages.grade",
    "mleredux._core.submissions.validation",
    "mleredux.plugin.grader",
    "mleredux.plugin.task",
)
"""Modules that are imported before the first fork."""
_FORK, _TABLES = b"\0", b"t"
"""Messages to the server; after the second one, it imports pandas and the entry points `mleredux.preloaded`."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables that make sums use the same order on every machine, and keep concurrent children from competing for
threads."""
_IDLE_SECONDS, _REAP_SECONDS = 60.0, 1.0
_MOST_FILES = 8
_RESUME_SECONDS = 0.2
_ID_BYTES = 16
INHERITED = ("PYTHON", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "MKL_")
"""Prefixes of variables that take effect when a process starts: different values need another server."""

_lock = threading.Lock()
_servers: dict[Any, tuple[socket.socket, subprocess.Popen[bytes] | None]] = {}


class Child:
    """A function that runs in a separate process, without this process's input and output.

    Attributes:
        pid: The id of its parent, the guard.
    """

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self.pid = connection, pid
        self.code: int | None = None

    def wait(self, seconds: float) -> bool:
        """Wait until the child has ended; return False if it has not within this many seconds."""
        if self.code is None:
            if not readable(self._connection, seconds):
                return False
            status = self._connection.recv(64)
            self.code = int(status) if status else -signal.SIGKILL
        return True

    def kill(self) -> None:
        """Kill the child and all processes that it started, without waiting."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the child and all processes that it started."""
        self.kill()
        while not self.wait(_RESUME_SECONDS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)  # the child may have stopped it
        self._connection.close()


def start(
    function: str,
    request: Mapping[str, Any],
    *,
    folder: str,
    errors: int,
    files: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    server: Mapping[str, str] | None = None,
    modules: tuple[str, ...] = (),
    tables: bool = True,
) -> Child:
    """Call `module:function(request, files)` in a child process.

    Args:
        function: The function to call.
        request: The request, JSON-serializable; `parent` is added: the id of the process that the child must not
            outlive. With `unguarded`, the function runs in the guard itself: it has to end itself and the processes
            that it started.
        folder: The child's working directory.
        errors: The open file that becomes the child's standard error.
        files: Open files passed to the function.
        environment: The child's variables, of which `PYTHONPATH` is its import path; None: `child_environment()`.
        server: All variables of the process that is forked, which children can read; None: `environment`.
        modules: The modules that the process imports instead of `PRELOADED`, if they are installed.
        tables: Whether the child will read tables, so that the process should import pandas before it forks.

    Raises:
        OSError: No process can be started.
    """
    environment = dict(child_environment() if environment is None else environment)
    task = {"function": function, "request": request, "environment": environment, "folder": folder}
    for _ in range(2):
        ours, theirs = socket.socketpair()
        with theirs:
            control = _control(environment if server is None else server, modules)
            with contextlib.suppress(OSError):  # it was idle, and has just ended
                socket.send_fds(control, [_TABLES if tables else _FORK], [theirs.fileno(), errors, *files])
        with contextlib.suppress(OSError):
            ours.sendall(json.dumps(task).encode() + b"\n")
            if pid := ours.recv(_ID_BYTES):
                return Child(ours, int(pid))
        ours.close()
        _forget(control)
    raise OSError("the process that starts graders has ended")


def same_plugins(catalogue: Catalogue) -> dict[str, Any]:
    """Return the arguments of a child's `Catalogue` with the same plugins, in a form that is valid in any folder."""
    names = dict.fromkeys((*catalogue.load, *sorted(names_in(LOAD_VARIABLE))))
    load = [str(Path(name).resolve()) if Path(name).exists() else name for name in names]
    return {"block": catalogue.block, "load": load}


def child_environment() -> dict[str, str]:
    """Return the current environment with this process's import path, without the requested plugins."""
    environment = {name: value for name, value in os.environ.items() if name != LOAD_VARIABLE}
    return {**ONE_THREAD, **environment, "PYTHONSAFEPATH": "1", "PYTHONPATH": _joined(Path.cwd(), *sys.path)}


@cache
def _joined(folder: Path, *entries: str) -> str:
    paths = dict.fromkeys(Path(folder, entry).resolve() for entry in entries)
    plain = dict.fromkeys(str(plain_path(path) if os.pathsep in str(path) else path) for path in paths)
    return os.pathsep.join(plain)


def warm(environment: Mapping[str, str] | None = None, modules: tuple[str, ...] = (), *, tables: bool = False) -> None:
    """Start a server now, so that it imports modules while the caller waits for something else; see `start`."""
    control = _control(child_environment() if environment is None else environment, modules)
    if tables:
        with contextlib.suppress(OSError):  # it has just ended; `start` will notice
            control.send(_TABLES)


def reads_tables(task: Task) -> bool:
    """Return whether scoring or checking a submission reads tables; installed graders do."""
    grader = task.metric.grader
    return isinstance(grader, str) or grader.score_tables is not None


def _key(environment: Mapping[str, str]) -> Any:
    inherited = (item for item in environment.items() if item[0].startswith(INHERITED) and item[0] != "PYTHONPATH")
    return os.getpid(), *sorted(inherited)


def _control(environment: Mapping[str, str], modules: tuple[str, ...] = ()) -> socket.socket:
    """Return the connection to the server, which is started if necessary."""
    with _lock:
        key = (os.getpid(), modules, *sorted(environment.items())) if modules else _key(environment)
        if key not in _servers:
            ours, theirs = socket.socketpair()
            with theirs:
                process = None
                if key != _key(child_environment()) or not _may_fork():
                    process = subprocess.Popen(
                        [sys.executable, "-m", __name__, str(theirs.fileno()), *modules],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        cwd="/",
                        start_new_session=True,
                        env=dict(environment),
                    )
                elif os.fork() == 0:
                    _become_server(theirs.fileno(), environment)
            _servers[key] = ours, process
        return _servers[key][0]


def _may_fork() -> bool:
    """Return whether this process can become a server by a fork, which costs less than a new interpreter.

    It must have no other threads, of which a fork would keep only the locks, and must not have imported NumPy, whose
    libraries read the number of threads only once.
    """
    return sys.platform == "linux" and "numpy" not in sys.modules and len([*Path("/proc/self/task").iterdir()]) == 1


def _become_server(connection: int, environment: Mapping[str, str]) -> NoReturn:
    """Serve after a fork, without this program's files, locks, signal handlers and output that is not yet written."""
    global _lock
    _lock = threading.Lock()
    _servers.clear()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.closerange(3, connection)
    os.closerange(connection + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    function = f"{serve.__module__}:{serve.__name__}"
    message = {"function": function, "request": {}, "environment": environment, "folder": "/"}
    _work(message, os.dup(0), [connection])


def _forget(control: socket.socket) -> None:
    """Drop a server that has ended, unless another thread already has."""
    with contextlib.suppress(OSError):
        try:
            control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # only this child has failed
    with _lock:
        for key, (ours, process) in list(_servers.items()):
            if ours is control:
                del _servers[key]
                ours.close()
                if process is not None:
                    process.wait()


def serve(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Fork for each request, until the parent ends or the server has been idle for a while.

    Args:
        request: Modules to import instead of `PRELOADED`, as `modules`.
        files: The connection to the parent.
    """
    control, modules = socket.socket(fileno=files[0]), request.get("modules")
    sys.path[:] = [entry for entry in sys.path if entry != str(Path.cwd())]
    _preload(modules or PRELOADED)
    complete, forks = bool(modules), 0
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    guards: set[int] = set()
    while True:
        ready, before = readable(control, _REAP_SECONDS if guards else _IDLE_SECONDS), len(guards)
        _reap(guards)
        if not ready:
            if before:
                continue
            return
        message, received, *_ = socket.recv_fds(control, 1, _MOST_FILES)
        if not message:
            end_all()  # guards may have been stopped
            return
        if not complete and (message == _TABLES or forks):
            _preload(("pandas", *(point.value for point in entry_points("mleredux.preloaded"))))
            complete = True
        if not received:
            continue
        forks += 1
        if (guard := os.fork()) == 0:
            control.close()
            _guard(socket.socket(fileno=received[0]), received[1], received[2:])
        guards.add(guard)
        for file in received:
            os.close(file)


def _preload(modules: Iterable[str]) -> None:
    """Import those modules that are installed."""
    gc.disable()  # nothing imported is garbage
    if sys.platform == "linux":  # on other platforms, forks of such a process may crash
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    gc.enable()


def readable(connection: socket.socket | int, seconds: float) -> bool:
    """Wait until something can be read; unlike `select`, `poll` accepts descriptors above 1,023."""
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _reap(guards: set[int]) -> None:
    """Reap guards that have ended, and kill the children of guards that were killed by their children."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitpid(-1, os.WNOHANG)[0]:
            guards.discard(ended)
    with contextlib.suppress(OSError):  # only Linux has this
        for line in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            if int(line) not in guards:
                os.kill(int(line), signal.SIGKILL)


def _guard(connection: socket.socket, errors: int, files: Sequence[int]) -> NoReturn:
    """Fork the child, end it with its group when the connection is closed, and report its exit status."""
    message = json.loads(connection.makefile("rb").readline() or b"null")
    if message is None:
        os._exit(1)
    message["request"]["parent"] = os.getpid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    connection.sendall(str(os.getpid()).encode().ljust(_ID_BYTES))  # first: the child may kill this process
    if message["request"].get("unguarded"):
        _work(message, errors, files)
    if (child := os.fork()) == 0:
        connection.close()
        _work(message, errors, files)
    ended, lock = False, threading.Lock()

    def end() -> None:
        with lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if not ended:
                os.killpg(child, signal.SIGKILL)
                os.kill(child, signal.SIGKILL)

    def watch() -> None:
        connection.recv(1)
        end()

    threading.Thread(target=watch, daemon=True).start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    end()  # so that its own children end too
    with lock:
        ended, (_, status) = True, os.waitpid(child, 0)
    end_all()  # what has left its group
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _work(message: Mapping[str, Any], errors: int, files: Sequence[int]) -> NoReturn:
    """Run as the child process."""
    code = 1
    try:
        os.setsid()
        os.dup2(errors, 2)
        os.close(errors)
        os.environ.clear()
        os.environ.update(message["environment"])
        os.chdir(message["folder"])
        module, _, name = message["function"].partition(":")
        if path := message["environment"].get("PYTHONPATH"):
            before = path.split(os.pathsep)
            sys.path[:] = [*before, *(entry for entry in sys.path if entry not in before)]
            importlib.invalidate_caches()
        getattr(importlib.import_module(module), name)(message["request"], files)
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
    serve({"modules": sys.argv[2:]}, [int(sys.argv[1])])
    os._exit(0)  # tearing down the imported modules takes as long as many forks
