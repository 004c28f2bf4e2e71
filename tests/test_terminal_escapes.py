"""Foreign names and words that commands print control no terminal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root

ODD = "x\x1b[2J\x1b]0;t\x07\x9b31m\u202e"
SCRIPT = f"""
import os, pathlib
output = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"])
(output / {ODD!r}).write_text("kept")
print("said", {ODD!r}, "/private/answers.csv")
raise SystemExit({ODD!r})
"""
COMMANDS = {
    "validate": "validate sub{}.csv digits",
    "grade": "grade missing{}.csv digits",
    "a plugin that is missing": "--plugin missing{}.py list",
    "agent check": "agent check ./folder{}",
    "run": "run digits --agent ./odd{}.py",
    "run with a manifest": "run digits --agent ./folder{}",
    "runs": "runs",
    "artifacts": "artifacts last",
    "logs": "logs last",
    "conduct": "runs conduct last",
    "verify": "runs verify last",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared data, a submission, agents and a run, each with an odd name."""
    home = tmp_path_factory.mktemp("terminal")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        mleredux.prepare("digits", data_dir=home / "data")
        (home / f"odd{ODD}.py").write_text(SCRIPT)
        (home / f"folder{ODD}").mkdir()
        (home / f"folder{ODD}" / "main.py").write_text(SCRIPT)
        shutil.copy(next(home.glob("data/digits/prepared/public/sample*")), home / f"sub{ODD}.csv")
        mleredux.run("digits", agent=f"./odd{ODD}.py", runs_dir=home / "runs", data_dir=home / "data")
    return home


@pytest.mark.parametrize("case", COMMANDS)
@pytest.mark.attack
def test_no_command_prints_what_controls_a_terminal(place: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(place / "data"))
    shown = CliRunner().invoke(root, [word.format(ODD) for word in COMMANDS[case].split()], color=True)
    said = re.sub(r"\x1b\[\d+m", "", shown.output) or str(shown.exception)  # without our own colours
    assert {char for char in shown.output and said if not char.isprintable()} <= {"\n"}, said
    assert said
