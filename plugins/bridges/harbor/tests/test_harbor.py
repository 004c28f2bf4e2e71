"""A task directory of Harbor: its own parser accepts it, agents get no answers, and the verifier gives our score."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.plugin.command import current
from mleredux_bridge_harbor import directory
from mleredux_testing.pytest_plugin import validator

LOAD = """\
import sys, typing, typing_extensions
typing.override = typing_extensions.override  # Harbor is for Python 3.12
from harbor.models.task.task import Task

assert Task.is_valid_dir(sys.argv[1])
read = Task(sys.argv[1])
print(read.config.model_dump_json())
"""


def export(home: Path, task: str, *options: str) -> tuple[int, str]:
    arguments = ["export-task", task, "-o", str(home / task), "--data-dir", str(home / "data"), *options]
    ended = CliRunner().invoke(root, arguments)
    return ended.exit_code, ended.output or str(ended.exception)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("harbor")
    told = f"{made / 'digits'} has the answers in tests/: don't give it to agents.\n"
    assert export(made, "digits", "--time-limit", "2h") == (0, told)
    return made


def test_harbor_loads_it(home: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(home / "digits")]
    ended = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(validator())})
    assert ended.returncode == 0, ended.stderr
    read = json.loads(ended.stdout)
    assert (read["schema_version"], read["verifier"]["environment_mode"]) == ("1.4", "separate")
    assert read["environment"]["network_mode"] == read["verifier"]["environment"]["network_mode"] == "no-network"
    assert read["agent"]["timeout_sec"] == 7200 and read["artifacts"] == ["/workspace/submission.csv"]


def test_agents_get_the_public_files_and_nothing_that_grades(home: Path) -> None:
    folder, prepared = home / "digits", mleredux.prepare("digits", data_dir=home / "data")
    given = folder / "environment"
    expected = {"Dockerfile", "requirements.txt", *(f"data/{path.name}" for path in prepared.public.iterdir())}
    assert {path.relative_to(given).as_posix() for path in given.rglob("*") if path.is_file()} == expected
    answers = list(folder.rglob("answers.csv"))
    assert [path.relative_to(folder).parts[0] for path in answers] == ["tests"]
    assert "sklearn.datasets" in (given / "Dockerfile").read_text()  # its data files are deleted there
    pinned = (folder / "tests" / "requirements.txt").read_text().splitlines()
    assert pinned and not [line for line in pinned if line.startswith("mleredux") or "==" not in line]


def test_a_derived_task_withholds_what_its_base_does(home: Path) -> None:
    assert export(home, "cv@digits")[0] == 0
    assert "sklearn.datasets" in (home / "cv@digits" / "environment" / "Dockerfile").read_text()


def test_errors_are_sentences(home: Path) -> None:
    code, output = export(home, "digits")
    assert code == 1 and "exists" in output
    code, output = export(home, "digitz")
    assert code == 1 and "There is no task 'digitz'" in output
    code, output = export(home, "digits", "--invalid", "nan")
    assert code == 1 and "finite" in output
    (home / "file").touch()
    ended = CliRunner().invoke(root, ["export-task", "digits", "-o", str(home / "file" / "x")])
    assert ended.exit_code == 1 and "can't be made" in str(ended.exception)


def test_any_title_is_valid_toml() -> None:
    title = 'Caf\u00e9 \U0001f642 "x" \\ \x7f\n'
    task = current().task("digits").model_copy(update={"title": title})
    assert tomllib.loads(directory._config(task, None))["task"]["description"] == title
