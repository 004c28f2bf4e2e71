"""A task directory of Harbor: its own parser accepts it, agents get no answers, and the verifier gives our score."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.plugin.command import current
from mleredux_bridge_harbor import directory
from mleredux_bridge_harbor.directory import write_task
from mleredux_bridge_harbor.exposure import exposed
from mleredux_testing.pytest_plugin import validator

LOAD = """\
import json, pathlib, sys, typing, typing_extensions
typing.override, typing.TypedDict = typing_extensions.override, typing_extensions.TypedDict  # Harbor is for Python 3.12
from harbor.lint import lint_task
from harbor.lint.models import LintRule
from harbor.models.task.task import Task

assert Task.is_valid_dir(sys.argv[1])
read = Task(sys.argv[1])
findings = lint_task(pathlib.Path(sys.argv[1]), selected_rules=set(LintRule))
print(json.dumps({"config": read.config.model_dump(mode="json"), "findings": sorted({f.rule for f in findings})}))
"""
KINDS = (
    "digits", "cell-nuclei", "synthetic-easy-5", "wine+planted-3", "wine+shadow", "wine+dev", "digits-code",
    "breast-cancer-model", "wine-service", "wine-tasting", "eda@wine", "leakage@synthetic-micro-public-3",
    "debugging+planted-public-1@wine",
)  # fmt: skip
"""Tasks of each kind."""


def export(home: Path, task: str, *options: str) -> tuple[int, str]:
    arguments = ["export-task", task, "-o", str(home / task), "--data-dir", str(home / "data"), *options]
    ended = CliRunner().invoke(root, arguments)
    return ended.exit_code, ended.output or str(ended.exception)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("harbor")
    told = (
        f"{made / 'digits'} has the answers in tests/ and solution/: do not give them to agents. "
        "The reward of solution/ is 1.\n"
    )
    assert export(made, "digits", "--time-limit", "2h") == (0, told)
    return made


def loaded(folder: Path) -> dict[str, Any]:
    """What Harbor's own parser reads, after its linter found nothing but what is for users to decide."""
    command = [sys.executable, "-c", LOAD, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(validator())})
    assert ended.returncode == 0, ended.stderr
    read: dict[str, Any] = json.loads(ended.stdout)
    assert read["findings"] == ["root-agent", "unpinned-image"]  # of `--image`, and not checked by default
    config: dict[str, Any] = read["config"]
    return config


def rewarded(folder: Path, submission: Path, logs: Path, python: Path) -> dict[str, float]:
    """The reward of Harbor's verifier for a submission, or for none."""
    env = {"PATH": f"{python}:{os.environ['PATH']}", "SUBMISSION": str(submission)}
    if (folder / "solution").is_dir() and submission.name == "oracle":
        subprocess.run([folder / "solution" / "solve.sh"], check=True, env=env)
    test = [folder / "tests" / "test.sh"]
    subprocess.run(test, check=True, env={**env, "LOGS": str(logs)}, capture_output=True)
    reward: dict[str, float] = json.loads((logs / "reward.json").read_text())
    return reward


def test_harbor_loads_it(home: Path) -> None:
    read = loaded(home / "digits")
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
    assert sorted(path.name for path in (folder / "solution").iterdir()) == ["solve.sh", "submission.csv"]
    assert "sklearn.datasets" in (given / "Dockerfile").read_text()  # its data files are deleted there
    pinned = (folder / "tests" / "requirements.txt").read_text().splitlines()
    assert pinned and not [line for line in pinned if line.startswith("mleredux") or "==" not in line]


def test_a_derived_task_withholds_what_its_base_does(home: Path) -> None:
    assert export(home, "cv@digits")[0] == 0
    assert "sklearn.datasets" in (home / "cv@digits" / "environment" / "Dockerfile").read_text()


@pytest.mark.parametrize("task", KINDS)
def test_the_oracle_has_the_best_reward_and_nothing_none(
    home: Path, task: str, tmp_path: Path, bare_python: Path
) -> None:
    if not (home / task).exists():
        assert export(home, task)[0] == 0
    assert loaded(home / task)["task"]["name"].startswith("mleredux/")
    assert rewarded(home / task, tmp_path / "nothing", tmp_path / "none", bare_python) == {"reward": 0, "valid": 0}
    assert rewarded(home / task, tmp_path / "oracle", tmp_path / "logs", bare_python) == {"reward": 1, "valid": 1}


def test_data_that_may_not_be_given_away_are_fetched_by_who_builds_the_images(
    home: Path, tmp_path: Path, bare_python: Path
) -> None:
    code, output = export(home, "diabetes")
    folder = home / "diabetes"
    assert code == 0 and "does not include the data" in output and "license" in output and loaded(folder)
    assert not (folder / "environment" / "data").exists() and not (folder / "tests" / "data").exists()
    # The script's last line, with the packages that are installed here instead of those of an index.
    words = next(line for line in (folder / "fetch.sh").read_text().splitlines() if line.startswith("PYTHONPATH"))
    words = words.replace('"$venv/bin/python"', sys.executable)
    subprocess.run(
        ["sh", "-euc", words], check=True, cwd=folder, env={**os.environ, "MLEREDUX_DATA_ROOT": str(tmp_path)}
    )
    assert rewarded(folder, tmp_path / "oracle", tmp_path / "logs", bare_python) == {"reward": 1, "valid": 1}
    assert loaded(folder)


@pytest.mark.parametrize("task", [name for name in sorted(current().entries("tasks")) if current().task(name).raw_id])
def test_no_data_of_kaggle_is_exported_and_the_source_of_the_verdict_is_named(task: str, tmp_path: Path) -> None:
    told = write_task(task, tmp_path / "task", data_dir=tmp_path / "data")
    assert isinstance(told, str) and f"https://www.kaggle.com/competitions/{task}/rules" in told
    assert told in (tmp_path / "task" / "fetch.sh").read_text()
    assert not [
        path for path in (tmp_path / "task").rglob("*") if "data" in path.relative_to(tmp_path / "task").parts[:2]
    ]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("notes.txt", lambda answers: answers, "contains"),
        ("notes.md", lambda answers: f"# Notes\n\n{answers}\nEnd\n", "contains"),
        ("inner/extra.csv", lambda answers: answers.replace("id,digit", "id,weight"), "column 'weight'"),
        ("order.csv", lambda answers: "\n".join(f"{line.split(',')[1]}.0" for line in answers.split()), "column"),
        ("kept.zip", lambda answers: {"a/b.csv": answers}, "contains"),
        ("tool.py", lambda answers: (Path(directory.__file__).with_name("grade.py")).read_text(), "tests/grade.py"),
        ("fair.csv", lambda answers: answers.replace(",1\n", ",2\n"), None),
        ("head.csv", lambda answers: "\n".join(answers.splitlines()[:5]), None),
    ],
)
def test_what_agents_see_is_scanned(
    home: Path, tmp_path: Path, name: str, content: Callable[[str], Any], found: str | None
) -> None:
    folder = tmp_path / "digits"
    shutil.copytree(home / "digits", folder)
    assert not list(exposed(folder, current().task("digits")))
    answers = (folder / "tests/data/digits/prepared/private/answers.csv").read_text()
    path, text = folder / "environment" / "data" / name, content(answers)
    path.parent.mkdir(exist_ok=True)
    if isinstance(text, dict):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, inner in text.items():
                archive.writestr(member, inner)
    else:
        path.write_text(text)
    phrases = list(exposed(folder, current().task("digits")))
    assert [phrase for phrase in phrases if found and found in phrase] or (not found and not phrases), phrases


def test_files_that_another_program_is_writing_are_not_exported(home: Path) -> None:
    """They are gone a moment later, as what a dangling link refers to."""
    prepared = mleredux.prepare("breast-cancer", data_dir=home / "data").public.parent
    (prepared / ".writing-gone").symlink_to("nowhere")
    assert export(home, "breast-cancer")[0] == 0
    copied = home / "breast-cancer" / "tests" / "data" / "breast-cancer" / "prepared"
    assert {path.name for path in prepared.iterdir()} - {".writing-gone"} == {path.name for path in copied.iterdir()}


def test_errors_are_sentences(home: Path) -> None:
    code, output = export(home, "digits")
    assert code == 1 and "exists" in output
    code, output = export(home, "digitz")
    assert code == 1 and "There is no task 'digitz'" in output
    code, output = export(home, "digits", "--invalid", "nan")
    assert code == 2 and "finite" in output
    for image in ("", "a b", "x\nRUN y", "$x"):
        ended = CliRunner().invoke(root, ["export-task", "digits", "-o", str(home / "x"), "--image", image])
        assert ended.exit_code == 1 and "invalid name" in str(ended.exception) and not (home / "x").exists()
    (home / "file").touch()
    ended = CliRunner().invoke(root, ["export-task", "digits", "-o", str(home / "file" / "x")])
    assert ended.exit_code == 1 and "can't be created" in str(ended.exception)


def test_any_title_is_valid_toml() -> None:
    title = 'Caf\u00e9 \U0001f642 "x" \\ \x7f\n'
    task = current().task("digits").model_copy(update={"title": title})
    assert tomllib.loads(directory._config(task, None, "CC0-1.0"))["task"]["description"] == title
