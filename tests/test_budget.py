"""The project stays within `budgets.toml`, and what falls stays down."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = '''"""Describe a module
in two lines."""

import math  # for the number


class Circle:
    """Not counted."""

    radius = (
        1.0,
        # not counted
    )
    """Not counted either."""

    text = """counted

twice"""
'''


def _budget() -> ModuleType:
    spec = importlib.util.spec_from_file_location("budget", ROOT / "tests" / "budget.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["budget"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


budget = _budget()


def test_the_project_is_within_its_budget() -> None:
    table = tomllib.loads(budget.TABLE.read_text(encoding="utf-8"))
    assert budget.faults(ROOT, table) == [], "after code was removed: python tests/budget.py --write"


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    assert budget.lines_of_code(SOURCE) == 2 + 3 + 3


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small project of one core of 40 lines and one plugin of 10 modules of 30 lines."""
    core = tmp_path / "core/src/mleredux"
    (core / "plugin").mkdir(parents=True)
    (core / "hookspecs.py").write_text("def mleredux_run():\n    pass\n" * 20)
    (core / "plugin" / "__init__.py").write_text("")
    (core / "plugin" / "task.py").write_text("from mleredux.models import Task as Task\n")
    for number in range(10):
        path = tmp_path / f"plugins/agents/tidy/src/tidy/m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" * 30)
    path.with_name("__init__.py").write_text('"""Tidy: `m0` to `m9`."""\n')
    return tmp_path


def sizes(tree: Path, **tables: dict[str, int]) -> list[str]:
    """What is wrong with the tree by its figures, of which some tables are replaced."""
    table = {
        "limits": {"distribution": 400, "folder": 20, "file": 100},
        "code": {"all": 341, "core": 41},
        "contract": {"hooks": 20, "names": 1},
        "unmapped": {"plugins/agents/tidy/src/tidy": 1},
    }
    found: list[str] = budget.faults(tree, table | tables)
    return found


def test_a_tree_at_its_figures_is_right(tree: Path) -> None:
    assert sizes(tree) == []


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"code": {"all": 341, "core": 40}}, "core has 41 lines of code; its ceiling is 40."),
        ({"code": {"all": 341}}, "core has 41 lines of code; its ceiling is 0."),
        ({"code": {"all": 400, "core": 41}}, "all has only 341 lines of code: write 341 in [code], where 400 is."),
        ({"limits": {"distribution": 299, "folder": 20, "file": 100}}, "plugins/agents/tidy has 300 lines of code;"),
        ({"limits": {"distribution": 400, "folder": 10, "file": 100}}, "plugins/agents/tidy/src/tidy has 11 modules;"),
        ({"limits": {"distribution": 400, "folder": 20, "file": 39}}, "core/src/mleredux/hookspecs.py has 40 lines;"),
        ({"distributions": {"plugins/agents/tidy": 400}}, "plugins/agents/tidy has 300 lines of code, within the"),
        ({"folders": {"plugins/agents/gone": 30}}, "plugins/agents/gone does not exist: remove its line in [folders]"),
        ({"contract": {"hooks": 19, "names": 1}}, "hooks has 20 members; its ceiling is 19."),
        ({"contract": {"hooks": 20, "names": 2}}, "names has only 1 members: write 1 in [contract], where 2 is."),
        ({"unmapped": {}}, "plugins/agents/tidy/src/tidy has 1 missing map"),
    ],
)
def test_what_is_above_or_far_below_its_ceiling_is_said(
    tree: Path, tables: dict[str, dict[str, int]], said: str
) -> None:
    (fault,) = sizes(tree, **tables)
    assert fault.startswith(said)


def test_a_map_names_each_module_and_inner_package(tree: Path) -> None:
    init = tree / "plugins/agents/tidy/src/tidy/__init__.py"
    init.write_text('"""Tidy.\n\n- ' + ", ".join(f"`m{number}`" for number in range(10)) + '\n"""\n')
    assert sizes(tree, unmapped={}) == []
    (init.parent / "inner").mkdir()
    (init.parent / "inner" / "__init__.py").write_text("")
    assert [fault for fault in sizes(tree, unmapped={}) if "missing map" in fault]


def test_generated_files_and_environments_are_not_counted(tree: Path) -> None:
    for folder in ("plugins/agents/tidy/src/tidy/_sync", "plugins/agents/tidy/.venv/src", "plugins/agents/build/src"):
        (tree / folder).mkdir(parents=True)
        shutil.copy(tree / "core/src/mleredux/hookspecs.py", tree / folder / "more.py")
    assert sizes(tree) == []


def test_written_figures_fall_and_rise_only_when_asked_to(tree: Path) -> None:
    limits = {"distribution": 200, "folder": 20, "file": 100}
    (code,) = (each for each in budget.measured(tree, limits) if each.title == "code")
    assert code.lowered({"all": 900, "core": 7}, rise=False) == {"all": 341, "core": 7}
    assert code.lowered({"all": 900, "core": 7}, rise=True) == {"all": 341, "core": 41}
    (plugins,) = (each for each in budget.measured(tree, limits) if each.title == "distributions")
    assert plugins.lowered({"plugins/agents/tidy": 900}, rise=False) == {"plugins/agents/tidy": 300}
    assert plugins.lowered({}, rise=False) == {}
    assert plugins.lowered({}, rise=True) == {"plugins/agents/tidy": 300}
    text = budget.written(limits, {"code": {"all": 341}})
    assert tomllib.loads(text) == {"limits": limits, "code": {"all": 341}}
