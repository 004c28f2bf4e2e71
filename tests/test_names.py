"""One rule leads from a folder to the distribution, the package and the plugin in it; modules are nouns."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
KITS = sorted(path.parent for path in ROOT.glob("kits/*/pyproject.toml"))
PRODUCTS = [ROOT / "core", *KITS, *sorted(path.parent for path in ROOT.glob("plugins/**/pyproject.toml"))]
WRITTEN = [*PRODUCTS, *sorted(path.parent for path in ROOT.glob("examples/*/pyproject.toml"))]
ROLES = {
    "agents": "agent",
    "artifacts": "artifact",
    "audit": "audit",
    "bridges": "bridge",
    "executors": "executor",
    "competitions": "competition",
    "stores": "store",
}
ROLES |= {"sandboxes": "sandbox", "trackers": "tracker", "services": ""}
NOUNS = {
    "briefing",
    "debugging",
    "encoding",
    "ensembling",
    "grading",
    "matching",
    "missing",
    "polling",
    "postprocessing",
    "ranking",
    "resampling",
    "sampling",
    "scaling",
}
NOUNS |= {"preprocessing", "screening"}
TO_BE_RENAMED = {"building", "gaming", "preparing", "watching"}


def project(folder: Path) -> dict[str, Any]:
    """The `[project]` of a distribution."""
    return dict(tomllib.loads((folder / "pyproject.toml").read_text())["project"])


def requirements(folder: Path) -> list[str]:
    """Everything that a distribution needs, with its extras."""
    told = project(folder)
    extras: dict[str, list[str]] = told.get("optional-dependencies", {})
    return [*told.get("dependencies", ()), *(one for extra in extras.values() for one in extra)]


def named(folder: Path) -> Any:
    return pytest.param(folder, id=folder.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("folder", [named(folder) for folder in PRODUCTS if "plugins" in folder.parts])
def test_folder_distribution_package_and_plugin_are_of_one_name(folder: Path) -> None:
    """`plugins/agents/aide` is `mleredux-agent-aide`, `mleredux_agent_aide`, plugin `aide`; services drop the role."""
    parts = folder.relative_to(ROOT / "plugins").parts
    role = ROLES[parts[0]] if len(parts) == 2 else ""
    distribution = "-".join(("mleredux", *([role] if role else []), folder.name))
    told = project(folder)
    assert told["name"] == distribution
    assert [path.name for path in (folder / "src").iterdir() if path.is_dir()] == [distribution.replace("-", "_")]
    (plugin,) = told["entry-points"]["mleredux"].items()
    assert plugin[0] == folder.name
    assert plugin[1].partition(".")[0] == distribution.replace("-", "_")


@pytest.mark.parametrize("folder", [named(folder) for folder in KITS])
def test_a_kit_is_a_library_of_one_name(folder: Path) -> None:
    """`kits/tables` is `mleredux-tables`, `mleredux_tables`; it is no plugin (but for its command), and needs none."""
    distribution = f"mleredux-{folder.name}"
    told = project(folder)
    assert told["name"] == distribution
    assert [path.name for path in (folder / "src").iterdir() if path.is_dir()] == [distribution.replace("-", "_")]
    assert told["entry-points"]["mleredux.kits"] == {folder.name: distribution.replace("-", "_")}
    assert folder.name == "testing" or "mleredux" not in told["entry-points"]
    kits = {f"mleredux-{kit.name}" for kit in KITS}
    needs = {re.split(r"[\[>]", need)[0] for need in requirements(folder) if need.startswith("mleredux")}
    assert needs <= {"mleredux", *kits}


@pytest.mark.parametrize("folder", [named(folder) for folder in PRODUCTS])
def test_modules_are_called_by_nouns(folder: Path) -> None:
    modules = {path.stem for path in (folder / "src").rglob("*.py")}
    assert {name for name in modules if name.endswith("ing")} - NOUNS - TO_BE_RENAMED == set()


@pytest.mark.parametrize("folder", [named(folder) for folder in PRODUCTS if folder.name != "testing"])
def test_what_tests_need_stays_out_of_product_wheels(folder: Path) -> None:
    for path in (folder / "src").rglob("*.py"):
        assert not re.match(r"(test|testing|conftest)(_|$)", path.stem), path
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in modules if re.match(r"(pytest|unittest|mleredux_testing)\b", name)], path


@pytest.mark.parametrize("folder", [named(folder) for folder in PRODUCTS])
def test_a_distribution_has_types_a_readme_and_addresses(folder: Path) -> None:
    (package,) = (path for path in (folder / "src").iterdir() if path.is_dir())
    described = project(folder)
    assert (package / "py.typed").exists() and (folder / described["readme"]).exists()
    assert described["urls"].keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert described["urls"]["Source"].endswith(f"/tree/main/{folder.relative_to(ROOT).as_posix()}")


@pytest.mark.parametrize("folder", [named(folder) for folder in WRITTEN])
def test_dependencies_between_distributions_are_bounded(folder: Path) -> None:
    if folder.parent.name != "examples":
        assert project(folder)["version"] == project(ROOT / "core")["version"]
    major, minor, _ = project(ROOT / "core")["version"].split(".")
    bounds = f">={major}.{minor},<{major}.{int(minor) + 1}"
    own = project(folder)["name"]
    ours = [need for need in requirements(folder) if need.startswith("mleredux") and not need.startswith(f"{own}[")]
    assert all(need.endswith(bounds) for need in ours), ours
    assert ours or folder.name in ("core", "client", "agentkit", "llm-protocols")


@pytest.mark.parametrize("kind", ["agent", "agent-models", "task-bundle", "plugin"])
def test_new_packages_are_bounded_alike(kind: str) -> None:
    text = (
        ROOT / "kits" / "testing" / "src" / "mleredux_testing" / "templates" / kind / "pyproject.toml.tmpl"
    ).read_text()
    major, minor, _ = project(ROOT / "core")["version"].split(".")
    ours = re.findall(r'"(mleredux[^"]*)"', text)
    assert ours and all(
        f">={major}.{minor},<{major}.{int(minor) + 1}" in need for need in ours if "-plugin" not in need
    )


@pytest.mark.parametrize("name", ["starter", "mlebench"])
def test_competitions_bring_the_graders_that_they_name(name: str) -> None:
    needs = requirements(ROOT / "plugins" / "competitions" / name)
    assert [need for need in needs if need.startswith("mleredux-graders")]
