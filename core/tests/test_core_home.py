"""Users without a home folder, or with one that can't be written."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from mleredux.errors import unusable_folder

COMMANDS = (("list", "tasks"), ("doctor", "--json"), ("runs",), ("prepare", "digits"), ("run", "digits", "--dry-run"))


WITHOUT = """
import os, pwd, sys

pwd.getpwuid = {}.__getitem__
import mleredux

if len(sys.argv) > 1:
    from mleredux._core.cli.root import main

    main()
if os.path.exists("solve.py"):
    mleredux.run("digits", agent="./solve.py")
mleredux.prepare("digits")
"""
HOMES = ("no entry", "a file", "below a file", "proc")
NEEDED = {"starter", "graders", "dummy", "repo", "docker"}
"""Plugins that the commands need. An index of all takes seconds, and can't be kept here: one home has all."""


def blocked(kind: str) -> str:
    """Return the plugins that a user with such a home blocks."""
    installed = {point.name for point in entry_points(group="mleredux")}
    assert installed > NEEDED
    return "" if kind == HOMES[0] else ",".join(installed - NEEDED)


def without_home(kind: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command, or the SDK, of a user without a home; nothing else names a folder for files."""
    (folder / "file").touch()
    homes = {"a file": str(folder / "file"), "below a file": str(folder / "file/home"), "proc": "/proc"}
    variables = {"HOME": homes[kind]} if kind in homes else {"XDG_CACHE_HOME": "/dev/null"}
    named = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MLEREDUX_DATA", "MLEREDUX_DATA_ROOT")
    variables |= {name: value for name, value in os.environ.items() if name not in named}
    variables["MLEREDUX_BLOCK_PLUGINS"] = blocked(kind)
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_fails_for_want_of_a_home(command: tuple[str, ...], home: str, tmp_path: Path) -> None:
    done = without_home(home, tmp_path, *command)
    said = done.stdout + done.stderr
    assert "internal error" not in said and "Traceback" not in said, said
    if command[0] == "prepare":
        assert done.returncode and "can't be written" in said, said
    elif command[0] in ("list", "runs"):
        assert done.returncode == 0, said


@pytest.mark.parametrize("home", HOMES)
def test_the_sdk_without_a_home_says_so(home: str, tmp_path: Path) -> None:
    done = without_home(home, tmp_path)
    assert done.returncode and "RuntimeError" not in done.stderr, done.stderr
    assert done.stderr.splitlines()[-1].startswith("mleredux.errors.DataError: The data directory"), done.stderr


@pytest.mark.parametrize("named", ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "MLEREDUX_RUNS_DIR"])
@pytest.mark.parametrize("kind", ["a file", "below a file", "a broken link", "too long", "not even for root"])
def test_a_folder_that_a_variable_names_and_nothing_can_create(
    kind: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing" / "here")
    places = {
        "a file": tmp_path / "file",
        "below a file": tmp_path / "file" / "home",
        "a broken link": tmp_path / "link",
    }
    place = places.get(kind, Path("/proc") if kind == "not even for root" else tmp_path / ("x" * 300))
    with pytest.raises(OSError, match=r"\[Errno") as raised:
        (place / ".cache" / "mleredux").mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv(named, str(place))
    sentence = str(unusable_folder(raised.value))
    assert f"The folder {place} can't be written" in sentence, sentence
    assert f"Set {named} to a folder that can be written." in sentence, sentence
    monkeypatch.setenv(named, str(tmp_path))
    assert unusable_folder(raised.value) is None, "a fault of the program stays one"


def test_other_errors_are_no_matter_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc")
    assert unusable_folder(FileNotFoundError(2, "No such file", "/other")) is None
    assert unusable_folder(ValueError("/proc/.cache")) is None
    assert unusable_folder(OSError("no name")) is None


def test_an_agent_without_a_home_says_so(tmp_path: Path) -> None:
    (tmp_path / "solve.py").touch()
    done = without_home("proc", tmp_path, "run", "digits", "--agent", "./solve.py")
    assert done.returncode == 1 and done.stdout == "", done
    problem = "The folder /proc can't be written (No such file or directory)."
    sentence = f"{problem} Set HOME to a folder that can be written."
    assert done.stderr == f"Error: {sentence}\n"
    assert without_home("proc", tmp_path).stderr.endswith(f"mleredux.errors.MlereduxError: {sentence}\n"), "the SDK"
