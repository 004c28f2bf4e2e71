"""Tests that a shell has ignore signals start programs that do not."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

TEST = """
import signal, subprocess, sys

def test_child():
    shown = "import signal; print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGINT))"
    child = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True)
    assert child.stdout.split()[0] == "0" and "default_int_handler" in child.stdout, child.stdout
    signal.raise_signal(signal.SIGHUP)  # as nohup promises
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "in a worker"])
def test_under_nohup_and_in_the_background(workers: list[str], tmp_path: object) -> None:
    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    with open(f"{tmp_path}/test_child.py", "w") as file:
        file.write(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "test_child.py"]
    done = subprocess.run(command, cwd=str(tmp_path), preexec_fn=ignore, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
