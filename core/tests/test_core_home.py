"""Users without a home folder, or with one that can't be written."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from mleredux.errors import no_home
from mleredux_testing.commands import mleredux

COMMANDS = (("list", "tasks"), ("doctor", "--json"), ("runs",), ("prepare", "digits"), ("run", "digits", "--dry-run"))


@pytest.fixture(params=["no entry", "a file", "below a file"])
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """What HOME is; nothing else says where files of a user are, nor has prepared data."""
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MLEREDUX_DATA_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    if request.param == "no entry":
        monkeypatch.setenv("HOME", "/")  # else it stays as `main` sets it
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", str(tmp_path / ("file/home" if request.param == "below a file" else "file")))
    return str(request.param)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_fails_for_want_of_a_home(command: tuple[str, ...], home: str) -> None:
    done = mleredux(*command)
    said = done.out + done.err
    assert "internal error" not in said and "Traceback" not in said, said
    if command[0] == "prepare":
        assert done.code and "can't be written" in said, said
    elif command[0] in ("list", "runs"):
        assert done.code == 0, said


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
