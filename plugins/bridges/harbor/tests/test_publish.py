"""A published folder: each part is read back by the program that it is for."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from contextlib import nullcontext
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.files import FileLock
from mleredux_bridge_harbor import publish
from mleredux_bridge_harbor.packages import graders_of
from mleredux_bridge_harbor.publish import plan, problems
from mleredux_testing.launches import wait_for
from mleredux_testing.pytest_plugin import validator
from packaging.requirements import Requirement

TASKS = ("synthetic-micro-hard-SEED", "leakage@synthetic-micro-hard-SEED", "cv@synthetic-micro-hard-SEED")
"""Competitions, and techniques; a solution of `cv` has less than the best reward."""
REGISTRY = """\
import json, pathlib, sys, typing, typing_extensions
typing.override, typing.TypedDict = typing_extensions.override, typing_extensions.TypedDict  # Harbor is for Python 3.12
from harbor.lint import lint_task
from harbor.lint.models import LintRule
from harbor.models.registry import Registry
from harbor.models.task.task import Task

folder, read = pathlib.Path(sys.argv[1]), {}
for dataset in Registry.from_path(folder / "registry.json").datasets:
    for entry in dataset.tasks:
        path = folder / entry.to_source_task_id().path
        assert Task.is_valid_dir(path) and Task(path).name == entry.name
        read.setdefault(dataset.name, set()).update(f.rule for f in lint_task(path, selected_rules=set(LintRule)))
print(json.dumps({name: sorted(rules) for name, rules in read.items()}))
"""


def called(*words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(root, ["publish", *words])
    return ended.exit_code, ended.output + (str(ended.exception) if ended.exception else "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("published")
    code, output = called(
        *TASKS, "--seeds", "3..5", "--evaluation", "0.3", "--certify", "1", "--name", "Micro set", "-o",
        str(home / "set"), "--data-dir", str(home / "data"),
    )  # fmt: skip
    assert code == 0 and "train: 4 tasks, 1 certified, 2 left out\n" in output, output
    # The data for evaluation depends on this installation's salt, and so does which solutions are good enough.
    assert re.search(r"^evaluation: [123] tasks?, [01] certified", output, re.MULTILINE), output
    return home / "set"


def rows(folder: Path, part: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{part}.jsonl").read_text().splitlines()]


def test_harbor_reads_the_registry_and_every_task(folder: Path) -> None:
    command = [sys.executable, "-c", REGISTRY, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(validator())})
    assert ended.returncode == 0, ended.stderr
    allowed = ["root-agent", "unpinned-image"]
    assert json.loads(ended.stdout) == {"micro-set-train": allowed, "micro-set-evaluation": allowed}


def test_the_verifier_of_a_packed_task_gives_the_reward(folder: Path, tmp_path: Path, bare_python: Path) -> None:
    copy = tmp_path / "task"
    shutil.copytree(folder / "tasks" / "train" / "synthetic-micro-hard-public-3", copy)
    assert not (copy / "tests" / "packages").exists() and (copy / "certificate.json").is_file()
    env = {"PATH": f"{bare_python}:{os.environ['PATH']}", "SUBMISSION": str(tmp_path / "oracle")}
    for reward in (0, 1):
        subprocess.run(
            [copy / "tests" / "test.sh"], check=True, env={**env, "LOGS": str(tmp_path)}, capture_output=True
        )
        assert json.loads((tmp_path / "reward.json").read_text()) == {"reward": reward, "valid": reward}
        subprocess.run([copy / "solution" / "solve.sh"], check=True, env=env)


def test_the_hub_reads_the_card(folder: Path) -> None:
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(folder / "README.md")
    assert card.data.license == ["cc0-1.0"] and "micro-set-train" in card.text
    (config,) = card.data.configs
    for file in config["data_files"]:
        assert {row["task"] for row in rows(folder, file["split"])} and (folder / file["path"]).is_file()
    assert "$" not in card.text.replace("$(", "")


def test_datasets_loads_the_rows_of_both_parts(folder: Path, tmp_path: Path) -> None:
    code = "import sys, datasets; datasets.load_dataset(sys.argv[1]).save_to_disk(sys.argv[2])"
    code += "; print({name: part.to_list() for name, part in datasets.load_from_disk(sys.argv[2]).items()})"
    words = [validator("verifiers") / "bin" / "python", "-c", code, folder, tmp_path / "saved"]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    ended = subprocess.run(words, capture_output=True, text=True, env=env)
    assert ended.returncode == 0, ended.stderr
    assert ast.literal_eval(ended.stdout) == {part: rows(folder, part) for part in ("train", "evaluation")}


def test_verifiers_validates_the_installed_package(folder: Path, tmp_path: Path) -> None:
    """Its solutions have the best reward, and nothing has none; what defines its tasks is installed with it."""
    programs, site, uv = validator("verifiers") / "bin", tmp_path / "site", shutil.which("uv") or "uv"
    install = [uv, "pip", "install", "--quiet", "--no-config", "--no-deps", "--python", programs / "python"]
    shutil.copytree(folder / "verifiers", tmp_path / "source")
    subprocess.run([*install, "--target", site, tmp_path / "source"], check=True)
    (package,) = distributions(path=[str(site)])
    tasks = [row["task"] for row in rows(folder, "train")]
    needed = {owner for task in tasks for owner in graders_of(current().task(task))}
    assert needed < {Requirement(line).name for line in package.requires or ()}
    task = {"sandbox": "process", "runs_dir": tmp_path / "runs", "data_dir": folder.parent / "data"}
    words = ["--no-rich", "-o", tmp_path / "out", "--runtime.type", "subprocess", "--max-concurrent", "2"]
    words += [word for name, value in task.items() for word in (f"--taskset.task.{name}", value)]
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(site)}
    ended = subprocess.run([programs / "vf-validate", "micro-set", *words], capture_output=True, text=True, env=env)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (results,) = (tmp_path / "out").glob("*/results.jsonl")
    validated = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted(row["name"] for row in validated) == sorted(tasks)
    assert all(row["gold"]["valid"] is row["noop"]["valid"] is True for row in validated), validated


def test_openenv_accepts_the_space_and_its_server(folder: Path, tmp_path: Path) -> None:
    """The server is started by the space's command, from its own packages alone."""
    programs, space = validator("openenv") / "bin", tmp_path / "space"
    shutil.copytree(folder / "openenv", space)
    words = [programs / "openenv", "validate", space, "--level", "static", "--skip-build", "--json"]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert json.loads(ended.stdout)["verdict"] == "pass", ended.stdout
    with tarfile.open(space / "packages.tar.xz") as archive:
        archive.extractall(space, filter="data")
    (command,) = re.findall(r'^CMD \["sh", "-c", "(.+)"]$', (space / "Dockerfile").read_text(), re.MULTILINE)
    # as the first process of a container, Python ignores SIGTERM until the server handles it
    assert re.findall(r"^STOPSIGNAL (.+)$", (space / "Dockerfile").read_text(), re.MULTILINE) == ["SIGINT"]
    (others,) = (programs.parent / "lib").glob("python*/site-packages")
    # Without -S, the packages of this checkout would be imported.
    (space / "python3").write_text(f'#!/bin/sh\nPYTHONPATH=packages:{others} exec {programs}/python -S "$@"\n')
    (space / "python3").chmod(0o755)
    env = {"PATH": f"{space}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    command += f" --port 0 --runs-dir {tmp_path}/runs --data-dir {tmp_path}/data"
    server = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True, cwd=space, env=env)
    try:
        assert server.stdout is not None
        port = re.search(r":\d+$", server.stdout.readline().strip())
        assert port is not None
        words = [programs / "openenv", "validate", "--url", f"http://127.0.0.1{port[0]}", "--json"]
        report = subprocess.run(words, capture_output=True, text=True).stdout
    finally:
        server.terminate()
        server.wait()
    assert json.loads(report)["passed"], report


def test_an_interrupted_folder_is_completed(folder: Path, tmp_path: Path) -> None:
    """With the same bytes: of a task half written, of one missing, and of one that is no longer wanted."""
    copy, data = tmp_path / "Micro set", folder.parent / "data"
    shutil.copytree(folder, copy)
    (copy / "SHA256SUMS").rename(copy / ".unfinished")
    missing, half = (copy / rows(copy, part)[0]["path"] for part in ("train", "evaluation"))
    shutil.rmtree(missing)
    half.rename(half.with_name(f".{half.name}"))
    (half.with_name(f".{half.name}") / "task.toml").unlink()
    (half.with_name(f"..{half.name}-abcdefgh") / "task").mkdir(parents=True)
    shutil.copytree(copy / rows(copy, "train")[1]["path"], copy / "tasks" / "train" / "unwanted")
    words = ["--seeds", "3..5", "--evaluation", "0.3", "--certify", "1", "-o", str(copy), "--data-dir", str(data)]
    code, output = called(*TASKS, *words)
    assert code == 0, output
    sums = [sorted(line for line in (one / "SHA256SUMS").read_text().splitlines()) for one in (folder, copy)]
    assert [line for line in sums[0] if "certificate" not in line and "/" in line] == [
        line for line in sums[1] if "certificate" not in line and "/" in line
    ]
    code, output = called(*TASKS, *words)
    assert code == 1 and "can't be created" in output


@pytest.mark.parametrize("failures", [1, 2])
def test_a_task_is_written_again_after_a_failure_of_the_interpreter(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = iter([SystemError("AST constructor recursion depth mismatch")] * failures)

    def write_task(_name: str, folder: Path, **_options: object) -> int:
        folder.mkdir()
        (folder / "task.toml").touch()
        for error in errors:
            raise error
        return 1

    monkeypatch.setattr(publish, "write_task", write_task)
    with pytest.raises(SystemError) if failures > 1 else nullcontext():
        assert publish._written("wine", tmp_path / "wine", None)
    assert (tmp_path / "wine").exists() == (failures == 1)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_folder_is_completed_after_its_program_was_killed_twice(
    folder: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """While the first task is written, and later; with the same bytes as without an interruption."""
    words = ["synthetic-micro-hard-SEED", "--seeds", "3..4", "--evaluation", "0", "--certify", "0"]
    words += ["--data-dir", str(folder.parent / "data"), "-o", str(tmp_path / "Micro set")]
    for entries in (3, 40):
        command = [sys.executable, "-m", "mleredux", "publish", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
            wait_for(lambda least=entries: tally(tmp_path) > least, 120)
            program.send_signal(how)
            printed, _ = program.communicate(timeout=120)
        assert program.returncode and "Traceback" not in printed, printed
    code, output = called(*words)
    assert code == 0, output
    expected, sums = (
        {line for line in (each / "SHA256SUMS").read_text().splitlines() if "/train/synthetic" in line}
        for each in (folder, tmp_path / "Micro set")
    )
    assert {line for line in expected if "certificate" not in line} == sums
    assert called("--check", str(tmp_path / "Micro set"))[0] == 0


def tally(folder: Path) -> int:
    """The number of files and folders below a folder that changes meanwhile."""
    return sum(len(files) + len(folders) for _, folders, files in os.walk(folder))


DAMAGES = {
    "byte": lambda path: path.write_bytes(path.read_bytes()[:-9] + b"#" + path.read_bytes()[-8:]),
    "first byte": lambda path: path.write_bytes(b"#" + path.read_bytes()[1:]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "other json": lambda path: path.write_bytes(b"[1]\n"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\n"),
    "link": lambda path: path.symlink_to(path.rename(path.parent.with_name("moved"))),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["parts.json", "train.jsonl", "evaluation.jsonl", "registry.json", "README.md", "new"])
def test_each_damaged_file_is_named(folder: Path, tmp_path: Path, name: str, damage: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    if name == "new":
        (copy / name).write_text("new" * 9)
    DAMAGES[damage](copy / name)
    code, output = called("--check", str(copy))
    expected = f"{name} differs from the published file.\n3"
    gone = name == "new" and damage in ("missing", "folder")
    assert (code, output) == ((0, output) if gone else (3, expected))


def test_a_failure_leaves_the_folder_unlocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_published", Mock(side_effect=RuntimeError))
    with pytest.raises(RuntimeError) as error:
        publish.publish(publish.Plan("x", {}), tmp_path / "set", 0)
    assert error.traceback and not FileLock(tmp_path / "set" / publish.UNFINISHED).held_elsewhere()


def test_two_programs_do_not_write_one_folder(folder: Path, tmp_path: Path) -> None:
    words = ["synthetic-micro-hard-SEED", "--seeds", "3..4", "--evaluation", "0", "--certify", "0"]
    words += ["--data-dir", str(folder.parent / "data"), "-o", str(tmp_path / "Micro set")]
    command = [sys.executable, "-m", "mleredux", "publish", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        wait_for(lambda: tally(tmp_path) > 3, 120)
        code, output = called(*words)
        printed, _ = program.communicate(timeout=120)
    assert (code, program.returncode) == (1, 0), printed + output
    assert "Another program is writing" in output
    assert called("--check", str(tmp_path / "Micro set"))[0] == 0


def test_certificates_are_checked_by_their_command(folder: Path, tmp_path: Path) -> None:
    (path,) = (folder / "tasks" / "train").glob("*/certificate.json")
    ended = CliRunner().invoke(root, ["certify", "--check", str(path.parent), "--data-dir", str(tmp_path)])
    assert ended.exit_code == 0, ended.output


def test_the_parts_are_disjoint_and_what_differs_is_named(folder: Path, tmp_path: Path) -> None:
    assert called("--check", str(folder)) == (0, f"{folder}: all checksums are correct, and the parts are disjoint.\n")
    facts = json.loads((folder / "parts.json").read_text())
    assert facts["train"]["commitment"] is None and facts["evaluation"]["commitment"].startswith("sha256:")
    assert all("-public-" in row["task"] for row in rows(folder, "train"))
    assert not any("-public-" in row["task"] for row in rows(folder, "evaluation"))
    listed = json.loads((folder / "verifiers" / "micro_set" / "tasks.json").read_text())
    assert listed == [row["task"] for row in rows(folder, "train")]
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    train, held = (copy / rows(copy, part)[0]["path"] for part in ("train", "evaluation"))
    shutil.copy(held / "environment/data/train.csv", train / "environment/data/train.csv")
    (copy / "new.txt").touch()
    with (held / "environment/data/train.csv").open(newline="") as file:
        count = sum(1 for _ in csv.DictReader(file))
    sentences = list(problems(copy))
    assert f"The parts share {count} rows of tables." in sentences
    assert sum("differs from the published file" in sentence for sentence in sentences) == 2 and len(sentences) == 3


def test_each_task_is_once_in_the_part_of_its_seed() -> None:
    tasks = [
        "wine", "wine", "synthetic-micro-public-1", "synthetic-micro-7", "synthetic-micro-SEED", "eda+planted-7@wine",
        "wine+planted-public-2", "tabular-playground-series-dec-2021",
    ]  # fmt: skip
    train = ["wine", "synthetic-micro-public-1", "wine+planted-public-2", "tabular-playground-series-dec-2021"]
    evaluation = ["synthetic-micro-7", "synthetic-micro-2", "eda+planted-7@wine"]
    assert plan(tasks, "Set 1.0", range(1, 3), 0.5).parts == {"train": train, "evaluation": evaluation}


@pytest.mark.parametrize("seeds", ["5..4", "0..9999999999", "-1..3", "7"])
def test_seeds_that_are_not_a_range_are_refused(seeds: str, tmp_path: Path) -> None:
    code, output = called("synthetic-micro-SEED", "--seeds", seeds, "-o", str(tmp_path / "x"))
    assert code == 2 and "not a range of seeds" in output


def test_tasks_with_the_same_folder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on file systems that ignore case."""
    monkeypatch.setattr("mleredux_bridge_harbor.publish._applies", lambda task: True)
    assert plan(["a+b", "a-c"], "x", range(0), 0).parts["train"] == ["a+b", "a-c"]
    for name in ("a-b", "A+B", "a@b"):
        with pytest.raises(MlereduxError, match="the same folder"):
            plan(["a+b", name], "x", range(0), 0)


@pytest.mark.parametrize(
    "name", ["\u00dcn\u00ef", "1st", 'x"', "x\ny", "json", "Verifiers", "", " x", "x-", "$name", "x" * 101]
)
def test_names_that_packages_cannot_have_are_refused(name: str) -> None:
    with pytest.raises(MlereduxError, match="can't be the name of a package"):
        plan(["wine"], name, range(0), 0)


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    mine = tmp_path / "tasks" / "train" / "mine" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    code, output = called("wine", "-o", str(tmp_path), "--name", "x", "--data-dir", str(tmp_path / "data"))
    assert code == 1 and "can't be created: File exists." in output
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_a_set_without_tasks_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    words = ["--certify", "0", "-o", str(tmp_path / "set"), "--data-dir", str(tmp_path / "data")]
    code, output = called("cv@synthetic-micro-public-3", *words)
    assert code == 1 and "All tasks are left out." in output and not (tmp_path / "set").exists()


def test_mistakes_are_sentences(folder: Path, tmp_path: Path) -> None:
    for words, sentence in (
        (["synthetic-micro-SEED", "-o", str(tmp_path / "x")], "synthetic-micro-SEED needs seeds"),
        (["synthetic-micro-SEED", "--seeds", "9..1", "-o", str(tmp_path / "x")], "not a range of seeds"),
        (["digitz", "-o", str(tmp_path / "x")], "There is no task 'digitz'"),
        (["wine", "-o", str(folder)], "can't be created"),
        (["wine"], "Specify a task and a folder"),
        (["--check", str(tmp_path)], "is not a published folder"),
    ):
        code, output = called(*words)
        assert code and sentence in output, output
    assert not (tmp_path / "x").exists()
