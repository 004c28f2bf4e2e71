"""A user's file that can't be read is one error, which names the file once and states the reason in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data.medals import read_leaderboard
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux_agent_repo.manifest import MANIFEST, read_manifest
from mleredux_agent_repo.scripts import _needed as script_requirements
from mleredux_audit_findings.study import Study
from mleredux_bridge_harbor.imported import read_config
from mleredux_experiments.execution.plan import read_plan
from mleredux_gateway.config import load_config
from mleredux_gateway.prices import Prices
from mleredux_grading import read_jsonl

READERS: dict[str, Callable[[Path], Any]] = {
    "listed submissions": read_jsonl,
    "leaderboard": read_leaderboard,
    "plan of findings": Study,
    "gateway's configuration": lambda path: load_config({"MLEREDUX_GATEWAY_CONFIG": str(path)}),
    "price table": partial(Prices, None),
}
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "No such file or directory"),
    "a folder": (Path.mkdir, "Is a directory"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff\xfe" * 9), "codec can't decode"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("reader", READERS)
def test_an_unreadable_file_is_named_once_with_the_reason(tmp_path: Path, reader: str, damage: str) -> None:
    path, (make, reason) = tmp_path / "file.csv", DAMAGES[damage]
    make(path)
    with pytest.raises(MlereduxError) as error:
        READERS[reader](path)
    assert reason in error.value.message and "Errno" not in error.value.message
    assert error.value.message.count(str(path)) == 1, error.value.message


def _script(path: Path) -> None:
    header = path.read_text().splitlines()
    script = path.with_name("agent.py")
    script.write_text("\n".join(["# /// script", *(f"# {line}" for line in header), "# ///"]))
    script_requirements(script)


TOML: dict[str, Callable[[Path], Any]] = {
    "plan": lambda path: read_plan(path, current()),
    "plan of findings": Study,
    "gateway's configuration": READERS["gateway's configuration"],
    "manifest of a repository": lambda path: read_manifest(path.rename(path.with_name(MANIFEST)).parent),
    "task of Harbor": lambda path: read_config(path.rename(path.with_name("task.toml")).parent),
    "header of a script": _script,
}


@pytest.mark.attack
@pytest.mark.parametrize("content", ["a = " + "[" * 100_000, "a = [", "a = 1\na = 2"], ids=["deep", "open", "twice"])
@pytest.mark.parametrize("reader", TOML)
def test_invalid_toml_is_one_sentence_however_deep_it_is(tmp_path: Path, reader: str, content: str) -> None:
    path = tmp_path / "file.toml"
    path.write_text(content)
    with pytest.raises(MlereduxError) as error:
        TOML[reader](path)
    assert len(error.value.message) < 500 and "\n" not in error.value.message
