"""`mleredux run --watch`: each change of an agent's files is run at once, and compared with the run before."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux_testing.pytest_plugin import NO_ENGINE

SOLVE = """\
import os
lines = open(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv").read().splitlines()
with open("submission.csv", "w") as file:
    file.write(lines[0] + "\\n")
    for line in lines[1:]:
        file.write(line.partition(",")[0] + ",140\\n")
print("first try")
"""
MANIFEST = '[agent]\nid = "tries"\ncommand = ["python", "/opt/agent/solve.py"]\n'


class Watching:
    """A watching process, and what it prints until it waits for a change."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mleredux", "run", "diabetes", *arguments, "--watch", "--runs-dir", "runs"],
            env={**os.environ, **NO_ENGINE, "COLUMNS": "200"},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def until(self, mark: str) -> str:
        found = ""
        while mark not in found:
            line = self._lines.get(timeout=120)
            assert line is not None, found
            found += line
        return found

    def stop(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "agent"
    place.mkdir()
    (place / "solve.py").write_text(SOLVE)
    return place


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_edited_script_is_run_at_once_and_compared(folder: Path, mleredux_home: Path) -> None:
    watching = Watching(folder, "--agent", "./solve.py", "--debug-sample", "40")
    try:
        first = watching.until("Watching solve.py")
        assert "on diabetes+debug-40" in first and "→" not in first
        replace(folder / "solve.py", ",140", ",150")
        second = watching.until("Watching solve.py")
        for told in ("solve.py changed", "score ", "· time ", '-        file.write(line.partition(",")[0] + ",140'):
            assert told in second
        replace(folder / "solve.py", '"first try"', "firs")
        third = watching.until("Watching solve.py")
        assert "NameError: name 'firs' is not defined (solve.py, line 7: print(firs))." in " ".join(third.split())
        replace(folder / "solve.py", "print(firs)", "print('second try')")
        fourth = watching.until("Watching solve.py")
        assert "+second try" in fourth and "NameError" in fourth
        assert watching.stop() == 0
    finally:
        watching.kill()
    records = [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*/run.json"))]
    assert len(records) == 4 and {record["spec"]["task"] for record in records} == {"diabetes+debug-40"}


def test_a_folder_with_its_own_runs_in_it_waits_for_a_change_and_survives_a_bad_manifest(
    folder: Path, mleredux_home: Path
) -> None:
    (folder / "mleredux-agent.toml").write_text("[agent\n")
    watching = Watching(folder, "--agent", ".", "--sandbox", "process")
    try:
        assert "mleredux-agent.toml is not valid TOML" in watching.until("Watching .")
        (folder / "mleredux-agent.toml").write_text(MANIFEST)
        assert "diabetes" in watching.until("Watching .")
        replace(folder / "solve.py", "first", "second")
        assert "+second try" in watching.until("Watching .")
        assert watching.stop() == 0
    finally:
        watching.kill()
    assert len(list((folder / "runs").glob("*/run.json"))) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--agent", "dummy"), "--watch requires a script or folder on this machine"),
        (("--agent", ".", "--json"), "it excludes --json and --resume"),
    ],
)
def test_what_can_not_be_watched_is_refused(arguments: tuple[str, ...], told: str) -> None:
    ended = CliRunner().invoke(root, ["run", "diabetes", *arguments, "--watch"])
    assert ended.exit_code == 2 and told in " ".join(ended.output.split())
