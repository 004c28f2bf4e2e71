"""What `.ci/run --since REVISION` runs, and in which order."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def _affected() -> ModuleType:
    spec = importlib.util.spec_from_file_location("affected", ROOT / ".ci" / "affected.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


affected = _affected()
ALWAYS = {("fast", "core/tests"), ("fast", "tests")}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("plugins/agents/baseline/src/x.py", {("whole", "plugins/agents/baseline"), ("fast", "plugins/agents/automl")}),
        ("plugins/audit/floor/tests/test_x.py", {("whole", "plugins/audit/floor")}),
        ("plugins/artifacts/reports/src/x.py", {("fast", "plugins/services/server")}),  # by way of the pages
        ("plugins/graders/pyproject.toml", {("whole", "plugins/graders"), ("fast", "plugins/competitions/mlebench")}),
        ("plugins/sandboxes/docker/src/x.py", {("whole", "tests/containers")}),
        ("tests/test_docs.py", {("whole", "tests/test_docs.py")}),
        ("core/tests/test_core_disk.py", {("whole", "core/tests/test_core_disk.py")}),
        ("docs/index.md", {("docs", ".")}),
        ("plugins/audit/floor/README.md", {("docs", "."), ("whole", "plugins/audit/floor")}),
    ],
)
def test_a_change_reaches_what_depends_on_it(file: str, expected: set[tuple[str, str]]) -> None:
    reached = set(affected.reached([file]))
    assert expected | ALWAYS <= reached
    assert ("whole", "plugins") not in reached and len(reached) < 15


@pytest.mark.parametrize(
    "file",
    ["core/src/mleredux/errors.py", "kits/testing/src/mleredux_testing/checks.py", "pyproject.toml", "conftest.py"],
)
def test_a_change_of_what_is_shared_reaches_everything(file: str) -> None:
    assert affected.reached([file]) == [("whole", path) for path in ("core/tests", "kits", "plugins", "tests")]


def test_a_distribution_needs_what_it_requires_and_what_its_tests_import() -> None:
    needs = affected.distributions(ROOT)
    assert "mleredux_view" in needs["plugins/services/server"]
    assert "mleredux_agent_baseline" in needs["plugins/agents/automl"]
    assert all(not folder.startswith("core") for folder in needs) and len(needs) > 40


def test_files_that_take_long_exist() -> None:
    seconds = tomllib.loads((ROOT / "tests" / "durations.toml").read_text())
    assert [file for file in seconds if not (ROOT / file).is_file()] == []
