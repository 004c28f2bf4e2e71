"""Users without a home folder, or with one that can't be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mleredux.errors import no_home

COMMANDS = (("list", "tasks"), ("doctor", "--json"), ("runs",), ("prepare", "digits"), ("run", "digits", "--dry-run"))


WITHOUT = """
import pwd, sys

pwd.getpwuid = {}.__getitem__
import mleredux

if len(sys.argv) > 1:
    from mleredux._core.cli import main

    main()
mleredux.prepare("digits")
"""
HOMES = ("no entry", "a file", "below a file")


def without_home(kind: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command, or the SDK, of a user without a home; nothing else names a folder for files."""
    (folder / "file").touch()
    homes = {"a file": str(folder / "file"), "below a file": str(folder / "file/home")}
    variables = {"HOME": homes[kind]} if kind in homes else {"XDG_CACHE_HOME": "/dev/null"}
    named = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MLEREDUX_DATA", "MLEREDUX_DATA_ROOT")
    variables |= {name: value for name, value in os.environ.items() if name not in named}
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


def test_what_needs_a_home_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with pytest.raises(OSError, match="Not a directory") as raised:
        os.mkdir(tmp_path / "file" / ".cache")
    assert "Set HOME to a folder that can be written." in str(no_home(raised.value))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert no_home(raised.value) is None
    monkeypatch.setenv("HOME", "/nonexistent")
    assert no_home(FileNotFoundError(2, "No such file", "/other")) is None
    assert no_home(ValueError("/nonexistent")) is None
