"""The directory of plugins: it says what there is, and each entry installs into a clean environment and loads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest
from mleredux._core.plugins import KINDS, Catalogue
from mleredux._core.plugins.directory import Listed, directory, read_directory
from mleredux_support.commands import mleredux
from mleredux_support.wheels import UV, build_wheels

ROOT = Path(__file__).parents[1]
PROJECTS = {
    str(tomllib.loads(path.read_text())["project"]["name"]): path
    for pattern in ("kits/testing", "plugins/*", "plugins/*/*")
    for path in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
}
FOUND_BY_OTHERS = [
    *PROJECTS.values(),
    *ROOT.glob("examples/*/pyproject.toml"),
    *ROOT.glob("kits/testing/src/mleredux_testing/templates/*/pyproject.toml.tmpl"),
]
LOAD = """
import importlib, importlib.metadata, json, sys
points = [one for one in importlib.metadata.distribution(sys.argv[1]).entry_points if one.group == "mleredux"]
print(json.dumps([one.name for one in points if one.load() is not None]))
"""


def test_all_of_ours_are_listed_with_what_they_register() -> None:
    listed, catalogue = {entry.name: entry for entry in directory()}, Catalogue()
    assert sorted(listed.keys() & PROJECTS.keys()) == sorted(PROJECTS)
    for name, path in PROJECTS.items():
        project = tomllib.loads(path.read_text())["project"]
        entry = listed[name]
        assert (entry.summary, entry.source) == (project["description"], project["urls"]["Source"]), name
        registered = {
            kind: tuple(one.id for one in catalogue.entries(kind).values() if one.plugin.distribution == name)
            for kind in KINDS
        }
        told = {kind: names for kind, names in entry.provides.items() if kind in KINDS}
        assert told == {kind: names for kind, names in registered.items() if names}, name


@pytest.mark.parametrize("path", FOUND_BY_OTHERS, ids=lambda path: path.parent.name)
def test_the_keyword_of_plugins_is_in_every_package(path: Path) -> None:
    assert '"mleredux-plugin"' in path.read_text()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('role = "agent"\nsummary = "x"', "has no source"),
        ('role = "toy"\nsummary = "x"\nsource = "y"', "has the role 'toy'"),
        ('role = "agent"\nsummary = "x"\nsource = "y"\nagent = ["z"]', "unknown key agent"),
    ],
)
def test_an_entry_that_is_not_valid_is_named(entry: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "directory.toml").write_text(f"[their-plugin]\n{entry}\n")
    with pytest.raises(ValueError, match=f"their-plugin.*{said}"):
        read_directory(tmp_path / "directory.toml")


def test_search_finds_by_all_words_and_marks_what_is_installed() -> None:
    (found,) = mleredux("plugins", "search", "mlflow", "tracker", "--json").json
    assert found["name"] == "mleredux-tracker-mlflow" and found["installed"] == version("mleredux-tracker-mlflow")
    assert found["install"] == "pip install mleredux-tracker-mlflow"
    assert [one["name"] for one in mleredux("plugins", "search", "spaceship-titanic", "--json").json] == [
        "mleredux-competition-mlebench"
    ]
    nothing = mleredux("plugins", "search", "no-such-thing")
    assert nothing.code == 0 and "keyword mleredux-plugin" in nothing.out
    assert len(mleredux("plugins", "search", "--json").json) == len(directory())


class Clean:
    """Makes clean environments in a folder, from wheels of this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels = folder, folder / "wheels"
        ours = ("MLEREDUX_", "PYTHON", "VIRTUAL")
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        build_wheels(self.wheels)

    def call(self, *command: str, path: Path | None = None) -> str:
        """What a command prints; `path` is a folder of programs to find first."""
        variables = {**self.variables, "PATH": f"{path}:{self.variables['PATH']}"} if path else self.variables
        done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=self.folder)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-2000:]}"
        return done.stdout

    def environment(self, name: str, *packages: str) -> Path:
        """The folder of programs of an environment with these packages and what they need."""
        place = self.folder / name
        if not place.exists():
            self.call(UV, "venv", "--quiet", "--python", sys.executable, str(place))
        kits = [f"mleredux-{path.name}" for path in ROOT.glob("kits/*")]
        fresh = [word for package in ("mleredux", *kits, *PROJECTS) for word in ("--refresh-package", package)]
        options = ("--quiet", "--python", str(place / "bin" / "python"), "--find-links", str(self.wheels), *fresh)
        self.call(UV, "pip", "install", *options, *packages)
        return place / "bin"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    return Clean(tmp_path_factory.mktemp("clean"))


@pytest.mark.slow
def test_each_entry_installs_into_a_clean_environment_and_loads(clean: Clean) -> None:
    def problem_of(entry: Listed) -> str | None:
        try:
            programs = clean.environment(entry.name, entry.install)
            if not json.loads(clean.call(str(programs / "python"), "-c", LOAD, entry.name)):
                return f"{entry.name} has no entry point in the group mleredux"
        except AssertionError as error:
            return str(error)
        finally:
            shutil.rmtree(clean.folder / entry.name, ignore_errors=True)
        return None

    with ThreadPoolExecutor(2) as pool:
        assert [problem for problem in pool.map(problem_of, directory()) if problem] == []


SCAFFOLDS = (
    "task-bundle",
    *(f"task-bundle --kind {kind}" for kind in ("code", "service", "model", "policy")),
    "agent --script",
    "grader",
    "technique",
    "sandbox",
    "executor",
    "artifact",
    "panel",
    "tracker",
    "command",
)
MODELS = ("agent --llm", "agent --cli")
"""Their next command needs a container engine and a key."""


@pytest.mark.slow
def test_all_scaffolds_pass_their_tests_and_their_next_commands_work(clean: Clean) -> None:
    """In an environment with their own dependencies alone: one for all, since each costs seconds."""
    programs = clean.environment("scaffolds", "mleredux-testing")
    folders, commands = [], []
    for kind in (*SCAFFOLDS, *MODELS):
        name = f"my-{kind.replace(' --', '-').replace(' ', '-')}"
        told = clean.call(str(programs / "mleredux"), "new", *kind.split(), name).splitlines()
        folders.append(clean.folder / name)
        assert told[-4] == "Next:" and f"pytest ./{name}" in told[-2]
        if kind in SCAFFOLDS:
            commands.append(told[-1].strip())
    clean.environment("scaffolds", *(f"{folder}[test]" for folder in folders))
    words = ("-q", "-p", "no:cacheprovider")
    # 2 checks of each that registers something with checks, else 1.
    assert "28 passed" in clean.call(str(programs / "python"), "-m", "pytest", *words, *map(str, folders))
    for command in dict.fromkeys(commands):
        clean.call("/bin/sh", "-c", command, path=programs)
    runs = json.loads(clean.call(str(programs / "mleredux"), "runs", "--json"))
    scores = {run["task"]: run["score"] for run in runs if "task-bundle" in run["task"]}
    assert len(scores) == 5 and None not in scores.values(), scores
