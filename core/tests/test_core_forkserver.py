"""The process that forks graders may end at any time; nobody who asks it is the worse for that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mleredux._core import forkserver
from mleredux._core.forkserver import child_environment


def leave_mark(request: dict[str, Any], files: list[int]) -> None:
    """Write a file and end with a code of its own."""
    Path(request["mark"]).write_text(os.environ["OMP_NUM_THREADS"])
    raise SystemExit(7)


def code_of(mark: Path) -> int | None:
    """How the function ended in a child, which left a mark."""
    with open(os.devnull, "wb") as errors:
        child = forkserver.start(
            f"{Path(__file__).stem}:leave_mark",
            {"mark": str(mark)},
            environment=child_environment() | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), ENTRIES])},
            folder="/",
            errors=errors.fileno(),
        )
    assert child.wait(60)
    child.close()
    assert mark.exists()
    return child.code


ENTRIES = child_environment()["PYTHONPATH"]


def test_whoever_asks_a_server_that_was_killed_gets_a_child_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(forkserver, "_servers", {})
    started = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: started.append(1) or start(*args, **kwargs))
    all_here = threading.Barrier(8)
    ask = forkserver._control
    monkeypatch.setattr(forkserver, "_control", lambda *given: (ask(*given), all_here.wait(10))[0])
    for number in range(3):
        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(code_of, [tmp_path / f"{number}-{one}" for one in range(8)]))
        assert codes == [7] * 8
        assert len(started) == number + 1, "all share the next one"
        ((_, process),) = forkserver._servers.values()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert {path.read_text() for path in tmp_path.iterdir()} == {"1"}


def note_imports(request: dict[str, Any], files: list[int]) -> None:
    """Write whether the process from which this was forked had imported pandas."""
    Path(request["mark"]).write_text(str("pandas" in sys.modules))


@pytest.mark.parametrize(
    ("warm", "requests", "preloaded"),
    [
        (False, [False], [False]),
        (False, [True], [True]),
        (True, [False], [True]),
        (False, [False, False], [False, True]),
        (False, [True, False], [True, True]),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems import nothing before they fork")
def test_pandas_is_imported_before_a_child_that_reads_tables_and_before_the_second_child(
    warm: bool, requests: list[bool], preloaded: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forkserver, "_servers", {})
    here = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), ENTRIES])}
    environment, marks = child_environment() | here, []
    forkserver.warm(environment, tables=warm)
    for number, tables in enumerate(requests):
        marks.append(tmp_path / str(number))
        function, request = f"{Path(__file__).stem}:note_imports", {"mark": str(marks[-1])}
        with open(os.devnull, "wb") as errors:
            places = {"environment": environment, "folder": "/", "errors": errors.fileno()}
            child = forkserver.start(function, request, **places, tables=tables)
        assert child.wait(60)
        child.close()
    assert [mark.read_text() for mark in marks] == list(map(str, preloaded))
    ((control, _process),) = forkserver._servers.values()
    control.close()


PROGRAM = """
import os, psutil, signal, sys, threading, time
from test_core_forkserver import code_of
from mleredux._core import forkserver
from pathlib import Path

state, folder = sys.argv[1], Path(sys.argv[2])
os.environ["OMP_NUM_THREADS"] = "1"
signal.signal(signal.SIGTERM, lambda *_: None)
locked = (folder / "locked").open("w")
print("printed once")
if state == "numpy":
    import numpy
if state == "thread":
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
forkserver.warm()
code = code_of(folder / "mark")
[server] = psutil.Process().children()
holds = {os.readlink(f"/proc/{server.pid}/fd/{name}") for name in os.listdir(f"/proc/{server.pid}/fd")}
executed = forkserver.__name__ in server.cmdline()
server.terminate()
server.wait(60)
print(code, executed, str(folder / "locked") in holds, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("state", "executed"), [("alone", False), ("thread", True), ("numpy", True)])
@pytest.mark.skipif(sys.platform != "linux", reason="other systems start an interpreter")
def test_a_program_without_threads_forks_its_server_and_shares_no_file_with_it(
    state: str, executed: bool, tmp_path: Path
) -> None:
    """It has neither the program's locks nor its signal handlers nor what it has printed."""
    command = [sys.executable, "-c", PROGRAM, state, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=300)
    assert done.stdout.splitlines() == ["printed once", f"7 {executed} False"], done.stderr
