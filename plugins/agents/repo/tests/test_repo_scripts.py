"""A user's own script, notebook or folder, without a container engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.agent import Agent
from mleredux.plugin.command import current
from mleredux_agent_repo.agents import agent_of
from mleredux_support.plans import plan_of
from mleredux_testing.pytest_plugin import NO_ENGINE

SOLVE = """\
import argparse, os, shutil
import helper
asked = argparse.ArgumentParser()
asked.add_argument("--data", default=os.environ["MLEREDUX_DATA_DIR"])
shutil.copyfile(asked.parse_args().data + "/sample_submission.csv", "submission.csv")
print("helped by", helper.NAME, "in", os.path.basename(os.getcwd()))
"""


def mleredux(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mleredux", *arguments],
        env={**os.environ, **NO_ENGINE},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mein Versuch"
    place.mkdir()
    (place / "solve.py").write_text(SOLVE)
    (place / "helper.py").write_text("NAME = 'a module beside it'\n")
    (place / "large.bin").write_bytes(b"0" * 1000)
    return place


def test_a_script_runs_at_once_beside_its_modules_and_with_arguments(folder: Path, mleredux_home: Path) -> None:
    ended = mleredux(
        "run", "wine", "--agent", "./solve.py", "-O", "args=--data $MLEREDUX_DATA_DIR", "--json", cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["report"]["valid_submission"] and record["sandbox"] == "process"
    assert not record["report"]["ledger"]["isolated"]
    assert re.fullmatch(r"repo:.*/solve\.py@copy-[0-9a-f]{40}", record["agent"])
    run = Path(record["path"])
    assert (run / "logs" / "agent.log").read_text() == "helped by a module beside it in output\n"
    assert (run / "output" / "code" / "solve.py").read_text() == SOLVE
    assert not list(run.rglob("large.bin")), "data beside a script is not taken along"


def test_a_notebook_runs_and_its_error_names_the_cell(tmp_path: Path, mleredux_home: Path) -> None:
    cells = ["%matplotlib inline\n!echo from a shell\nimport os, shutil", "%%bash\necho $((1 + 2))", "print(undefined)"]
    made = {"cells": [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells]}
    (tmp_path / "try.ipynb").write_text(json.dumps(made))
    ended = mleredux("run", "wine", "--agent", "try.ipynb", "--json", cwd=tmp_path)
    record = json.loads(ended.stdout)
    assert ended.returncode == 3 and record["cause"] == "agent_crashed"
    log = (Path(record["path"]) / "logs" / "agent.log").read_text()
    assert "from a shell" in log and "3\n" in log
    assert log.endswith("Error in cell 3 of try.ipynb: NameError: name 'undefined' is not defined\n")
    assert "Error in cell 3 of try.ipynb: NameError" in record["message"]


def test_a_folder_with_a_manifest_runs_without_an_engine_and_says_so(
    write_agent: Any, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TOKEN", "set")
    folder = write_agent("mine")
    (folder / "requirements.txt").write_text("pip\n")
    asked = ("run", "wine", "--agent", str(folder), "--pass-env", "TOY_TOKEN")
    ended = mleredux(*asked, "-O", "level=5", cwd=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "can't be reached" in ended.stderr and "without isolation" in ended.stderr
    refused = mleredux(*asked, "--sandbox", "docker", "--runs-dir", str(mleredux_home / "none"), cwd=folder)
    assert refused.returncode == 1 and "`--sandbox process`" in refused.stderr
    assert not list((mleredux_home / "none").glob("*/run.json")), "a refused run leaves nothing behind"


def metadata(folder: Path, text: str) -> Agent:
    (folder / "solve.py").write_text(f"# /// script\n{text}# ///\n")
    return agent_of(f"repo:{folder / 'solve.py'}")


def test_requirements_come_from_inline_metadata_or_the_file_beside_it(folder: Path, mleredux_home: Path) -> None:
    found = metadata(folder, '# requires-python = ">=3.11"\n# dependencies = ["pandas>=2", "numpy"]\n').build.folder
    assert found is not None and found.python == ("pandas>=2", "numpy") and found.requires_python == ">=3.11"
    with pytest.raises(MlereduxError, match="PEP 723"):
        metadata(folder, "# dependencies = 3\n")
    (folder / "solve.py").write_text(SOLVE)
    (folder / "requirements.txt").write_text("numpy\n")
    found = agent_of(f"repo:{folder}").build.folder
    assert found is not None and found.python == ("-r requirements.txt",)


def test_a_notebook_gets_what_comes_with_jupyter(folder: Path, mleredux_home: Path) -> None:
    (folder / "solve.ipynb").write_text('{"cells": []}')
    (folder / "requirements.txt").write_text("tqdm\n")
    build = agent_of(f"repo:{folder / 'solve.ipynb'}").build
    jupyter = ("nbclient", "ipykernel", "ipywidgets")
    assert build.folder is not None and build.folder.python == ("-r requirements.txt", *jupyter)
    assert build.context is not None and build.dockerfile is not None
    assert [name for name in jupyter if name not in (build.context / build.dockerfile).read_text()] == []


def test_only_their_own_machine_runs_agents_without_isolation(folder: Path, mleredux_home: Path) -> None:
    reference = f"repo:{folder / 'solve.py'}"
    assert plan_of(current(), "wine", reference, own_machine=True).sandbox == "process"
    with pytest.raises(MlereduxError, match="isolation"):
        plan_of(current(), "wine", reference, sandbox="process")
    assert plan_of(current(), "wine", reference).sandbox != "process"


@pytest.mark.parametrize(
    ("files", "said"),
    [((), "neither a mleredux-agent.toml nor a script"), (("a.py", "b.py"), r"several scripts \(a.py, b.py\)")],
)
def test_a_folder_whose_script_is_not_clear_says_what_to_do(
    tmp_path: Path, mleredux_home: Path, files: tuple[str, ...], said: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(MlereduxError, match=said):
        agent_of(f"repo:{tmp_path}")
