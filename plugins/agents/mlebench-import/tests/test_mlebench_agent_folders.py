"""Folders in MLE-bench's agent layout: read, imported, found again, refused with a reason."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux.errors import MlereduxError, NotFound
from mleredux_agent_mlebench_import.environment import dockerfile
from mleredux_agent_mlebench_import.layout import Entry, read_folder
from mleredux_agents.options import libraries

STEADY = Path(__file__).parent / "agents" / "steady"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    set_current(None)
    yield tmp_path / "data" / "mleredux" / "mlebench-agents"
    set_current(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STEADY, tmp_path / "steady"))


def cli(*arguments: str) -> Any:
    return CliRunner().invoke(root, list(arguments))


def test_anchors_merges_and_both_kinds_of_arguments_are_understood() -> None:
    entries = read_folder(STEADY)
    assert list(entries) == ["steady", "steady/secretive"]
    plain, secretive = entries.values()
    assert plain.arguments(plain.kwargs) == ["model.trees=20", "copy_data=False", "model.name=forest"]
    assert secretive.arguments(secretive.kwargs) == ["--model.name", "forest", "--seed", "3"]
    assert plain.env == {"TIME_LIMIT_SECS": "600", "GREETING": 'it\'s "steady"'} and plain.secrets == ()
    assert secretive.secrets == ("OPENAI_API_KEY", "TEAM_TOKEN") and secretive.env == plain.env


def test_secrets_reach_variables_of_other_names_by_the_shell_and_never_as_text() -> None:
    value = "it's $HOME ${{ secrets.A_KEY }} and ${{secrets.B_KEY}}!"
    entry = Entry("a", "start.sh", "Dockerfile", secret_env={"A_KEY": "${{ secrets.A_KEY }}", "MIXED": value})
    (line,) = entry.exports()
    said = subprocess.run(
        ["bash", "-c", f'{line}\nprintf %s "$MIXED"'],
        env={"A_KEY": "o'n\"e", "B_KEY": "$(two)"},
        capture_output=True,
        text=True,
    ).stdout
    assert said == "it's $HOME o'n\"e and $(two)!"


def test_import_lists_agents_and_they_are_found_by_name(folder: Path) -> None:
    told = cli("agent", "import-mlebench", str(folder), "--json")
    assert told.exit_code == 0, told.output
    first, second = json.loads(told.stdout)["agents"]
    assert (first["id"], second["id"]) == ("mlebench:steady", "mlebench:steady/secretive")
    assert second["secrets"] == ["OPENAI_API_KEY", "TEAM_TOKEN"]

    listed = {row["id"]: row for row in json.loads(cli("list", "agents", "--json").stdout)}
    assert (
        listed["mlebench:steady"]["network"] == "none" and listed["mlebench:steady/secretive"]["network"] == "gateway"
    )

    catalogue = Catalogue()
    agent = catalogue.agent("mlebench:steady", {"model.trees": 7})
    assert agent.command[-3:] == ("model.trees=7", "copy_data=False", "model.name=forest")
    assert agent.limits.time_limit == 600 and agent.isolated
    assert agent.reference == first["reference"] and "@" in first["reference"]
    with pytest.raises(MlereduxError, match=r"no option model\.leaves"):
        catalogue.agent("mlebench:steady", {"model.leaves": 1})


def test_a_run_names_the_very_copy_whatever_becomes_of_folder_and_name(folder: Path) -> None:
    cli("agent", "import-mlebench", str(folder))
    pinned = Catalogue().agent("mlebench:steady").reference
    assert pinned is not None
    (folder / "main.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    told = cli("agent", "import-mlebench", str(folder))
    assert "its name now stands for this folder" in told.stderr
    now = Catalogue().agent("mlebench:steady")
    assert now.reference != pinned
    shutil.rmtree(folder)
    old = Catalogue().agent(pinned)
    assert old.reference == pinned and old.build.context is not None
    assert (old.build.context / "main.py").read_bytes() == (STEADY / "main.py").read_bytes()


def test_only_some_agents_of_a_folder_are_imported_where_they_are_named(folder: Path) -> None:
    assert cli("agent", "import-mlebench", str(folder), "--id", "steady").output == "mlebench:steady\n"
    with pytest.raises(NotFound, match="no imported agent 'steady/secretive'"):
        Catalogue().agent("mlebench:steady/secretive")
    assert cli("agent", "import-mlebench", str(folder), "--id", "other").exit_code == 2


def test_a_folder_is_used_without_importing_it(folder: Path, home: Path) -> None:
    agent = Catalogue().agent(f"mlebench:{folder}#steady/secretive")
    assert agent.reference is not None and agent.reference.startswith("mlebench:steady/secretive@")
    assert not (home / "agents.json").exists()
    with pytest.raises(NotFound, match="has several agents"):
        Catalogue().agent(f"mlebench:{folder}")
    with pytest.raises(NotFound, match="no agent 'other'"):
        Catalogue().agent(f"mlebench:{folder}#other")
    with pytest.raises(NotFound, match="There is no copy"):
        Catalogue().agent("mlebench:steady@0123456789abcdef")


def test_the_agents_dockerfile_stays_as_it_is_behind_the_stage_it_builds_on() -> None:
    own = "# syntax=docker/dockerfile:1\nARG TAG=1\nFROM mlebench-env\nRUN true\n"
    lines = dockerfile(own, libraries("none")).splitlines()
    assert lines[:3] == ["ARG BASE_IMAGE", "# syntax=docker/dockerfile:1", "ARG TAG=1"]
    assert (
        lines.index("FROM ${BASE_IMAGE} AS mlebench-env") < lines.index("FROM mlebench-env") < lines.index("RUN true")
    )
    ready = dockerfile(own, libraries("none"), "their/env:2")
    assert "FROM their/env:2 AS mlebench-env" in ready and "BASE_IMAGE" not in ready


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (None, r"has no config\.yaml"),
        ("a: [", "is not valid YAML"),
        ("- a\n", "no mapping of agents"),
        ("vars: {x: 1}\n", "defines no agent"),
        ("a: {start: steady/start.sh}\n", "has no `dockerfile`"),
        ("a: {start: ../../etc/passwd, dockerfile: Dockerfile}\n", "which is not in the folder"),
        ("a: {start: start.sh, dockerfile: Dockerfile, kwargs_type: click}\n", "neither omegaconf nor argparse"),
        ("a: {start: start.sh, dockerfile: Dockerfile, kwargs: [1]}\n", "has kwargs that do not map names"),
        ("a: {start: start.sh, dockerfile: Dockerfile, env_vars: {'A B': 1}}\n", "which is not a valid name"),
        ("'a b': {start: start.sh, dockerfile: Dockerfile}\n", "has a name with characters other"),
    ],
)
def test_what_is_no_such_folder_is_refused_with_a_reason(folder: Path, config: str | None, why: str) -> None:
    (folder / "config.yaml").unlink()
    if config is not None:
        (folder / "config.yaml").write_text(config, encoding="utf-8")
    with pytest.raises(MlereduxError, match=why):
        read_folder(folder)


def test_links_out_of_the_folder_and_libraries_that_make_no_sense_are_refused(folder: Path) -> None:
    told = cli("agent", "import-mlebench", str(folder), "--libraries", "magic")
    assert "neither a set of libraries" in str(told.exception)
    (folder / "answers").symlink_to("/etc/passwd")
    assert "links outside the folder" in str(cli("agent", "import-mlebench", str(folder)).exception)


def test_an_agent_that_wants_privileges_is_warned_of(folder: Path) -> None:
    text = (folder / "config.yaml").read_text(encoding="utf-8").replace("steady:\n", "steady:\n  privileged: true\n")
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    assert "it will run without privileges" in cli("agent", "import-mlebench", str(folder)).stderr
