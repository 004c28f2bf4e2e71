"""Signals: ignored ones of a shell are not inherited by programs of tests; early ones end the command in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

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


STARTS = {"command": [str(Path(sys.executable).with_name("mleredux"))], "module": [sys.executable, "-m", "mleredux"]}
IMPORTED = {
    "at the start": ("click", "--version"),
    "with the hooks": ("pluggy", "plugins"),
    "by a command": ("pydantic", "list"),
}
"""Modules that the command imports early or late, and arguments with which it does so."""
WAYS = {
    "plainly": "os.kill(os.getpid(), {number})",
    "in exec": "exec('os.kill(os.getpid(), {number}); [None for _ in range(1000)]')",
    "where all is caught": "try:\n    os.kill(os.getpid(), {number})\nexcept BaseException:\n    raise ImportError",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", IMPORTED)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("start", STARTS)
def test_a_signal_during_imports_ends_the_command_in_one_line(
    tmp_path: Path, start: str, number: int, moment: str, way: str
) -> None:
    if way == "where all is caught" and moment != "at the start":
        pytest.skip("only before the command line is imported can an import not change the interruption")
    module, *arguments = IMPORTED[moment]
    code = WAYS[way].format(number=int(number))
    tmp_path.joinpath(f"{module}.py").write_text(f"import os, sys\nprint('reached', flush=True)\n{code}\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MLEREDUX_RUNS_DIR": str(tmp_path / "runs")}
    done = subprocess.run([*STARTS[start], *arguments], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "reached\n"
    assert (done.returncode, done.stderr.strip()) == (130, "Stopped.")


@pytest.mark.parametrize("start", STARTS)
def test_ignored_signals_stay_ignored(tmp_path: Path, start: str) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    tmp_path.joinpath("pluggy.py").write_text(
        f"import os, sys\nos.kill(os.getpid(), {int(signal.SIGINT)})\nsys.exit(7)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run([*STARTS[start], "plugins"], env=environment, preexec_fn=ignore, timeout=120).returncode == 7
