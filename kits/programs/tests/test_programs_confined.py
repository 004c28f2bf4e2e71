"""Submitted code that is executed while it is graded: it computes, and reaches nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mleredux_programs import run_confined

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
_GRADED = """
from mleredux._core.submissions.children import leave_network
from mleredux_programs import run_confined
leave_network()
print(run_confined(["-c", "print('confined')"], {}, []).log)
"""
_TRIED = """
import os, socket
def tried(what, attempt):
    try:
        attempt()
    except OSError:
        return
    print("reached", what)
tried("a secret", lambda: open({secret!r}).read())
tried("its folder", lambda: os.listdir({folder!r}))
tried("files of users", lambda: open("/etc/passwd").read())
tried("processes", lambda: open("/proc/1/environ").read())
tried("a process", lambda: os.kill({pid}, 0))
tried("the interpreter", lambda: open(os.__file__, "a"))
tried("libraries", lambda: open("/usr/mleredux", "w"))
tried("the root", lambda: open("/mleredux", "w"))
tried("loopback", lambda: socket.create_connection(("127.0.0.1", {port}), 1))
tried("the engine", lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"))
tried("root", lambda: os.setuid(0))
tried("devices", lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)))
print("tried", os.environ.get("MLEREDUX_SECRET"))
"""


def test_a_script_computes_with_its_inputs_and_packages() -> None:
    script = b"import pydantic, sys; open('out', 'w').write(open('in').read() * 2); print(sys.argv[1])"
    found = run_confined(["script.py", "told"], {"script.py": script, "in": b"ab"}, ["out", "missing"])
    assert (found.code, found.log, found.files) == (0, "told", {"out": b"abab"})


def test_it_is_executed_by_the_child_that_scores() -> None:
    """Which has moved to another user namespace, if it is not root."""
    told = subprocess.run([sys.executable, "-c", _GRADED], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("confined\n", "")


@pytest.mark.attack
def test_it_reaches_no_file_process_or_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    secret = tmp_path / "answers.csv"
    secret.write_text("1")
    secret.chmod(0o644)
    monkeypatch.setenv("MLEREDUX_SECRET", "told")
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = _TRIED.format(secret=str(secret), folder=str(tmp_path), pid=os.getppid(), port=server.getsockname()[1])
        found = run_confined(["script.py"], {"script.py": text.encode()}, [])
    assert (found.code, found.log) == (0, "tried None")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("import time; time.sleep(60)", None),
        ("while True: pass", None),
        ("import sys; sys.exit(97)", 97),
        ("bytearray(10**9)", 1),
        ("open('out', 'wb').write(bytes(3 << 20))", 1),
        ("import os; os.close(1); os.close(2); os._exit(3)", 3),
    ],
)
@pytest.mark.attack
def test_limits_hold_and_are_told(script: str, code: int | None) -> None:
    began = time.monotonic()
    assert run_confined(["-c", script], {}, ["out"], seconds=2, memory_mb=500, disk_mb=2).code == code
    assert time.monotonic() - began < 60


@pytest.mark.attack
def test_what_it_started_ends_with_it() -> None:
    script = "import os, time; [os.fork() or time.sleep(600) for _ in range(3)] if os.fork() == 0 else print('left')"
    began = time.monotonic()
    assert run_confined(["-c", script], {}, [], seconds=300).log == "left"
    assert time.monotonic() - began < 200


@pytest.mark.attack
def test_processes_are_limited() -> None:
    script = "import os, time\nfor n in range(500):\n    os.fork() or time.sleep(60)"
    assert "Resource temporarily unavailable" in run_confined(["-c", script], {}, [], seconds=20).log


@pytest.mark.attack
def test_only_ordinary_files_of_moderate_size_are_returned(tmp_path: Path) -> None:
    script = "import os; os.symlink('/etc/passwd', 'a'); os.mkfifo('b'); os.mkdir('c'); os.link('in', 'd')"
    found = run_confined(["-c", script], {"in": b"1"}, ["a", "b", "c", "d"])
    assert (found.code, found.files) in [(0, {"d": b"1"}), (1, {})]
