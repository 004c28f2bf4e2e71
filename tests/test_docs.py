"""The docs are current and complete, and what they tell to type works."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import mleredux
import mleredux_testing
import pytest
from mleredux import plugin
from mleredux._core.cli.root import COMMANDS
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.produce import _OWN_FILES
from mleredux.models import CAUSES, State
from mleredux.models.events import Known
from mleredux.models.experiment import Arm, Stop
from mleredux.plugin.executor import Executor
from mleredux.plugin.sandbox import Sandbox
from mleredux_agents.rewards import REWARDS
from mleredux_audit_findings.study import ARMS
from mleredux_experiments.results.measures import MEASURES
from pydantic import TypeAdapter

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BUILT = {DOCS / "changelog.md", DOCS / "contributing.md", *(DOCS / "reference" / "packages").glob("*.md")}
"""What the site's build makes here of files elsewhere; git ignores it."""
PAGES = [*sorted(ROOT.glob("*.md")), *sorted({*DOCS.rglob("*.md")} - _BUILT)]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_made_pages_are_current() -> None:
    """In a process of its own: what other tests did to this one must not show in the pages."""
    done = subprocess.run([sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate.py`: {done.stdout}{done.stderr}"


def test_every_hook_is_documented(generate: ModuleType) -> None:
    page = (DOCS / "reference" / "hooks.md").read_text()
    hooks = generate.hook_names()
    assert len(hooks) >= 10
    for name in hooks:
        section = page.partition(f"### {name}\n")[2].partition("\n#")[0]
        sentence = section.rpartition("```")[2].strip()
        assert sentence.endswith("."), f"{name} has no sentence"


def test_the_commands_of_plugins_are_documented(generate: ModuleType) -> None:
    """`audit`, `serve` and the like, with the distribution that brings them."""
    page = (DOCS / "reference" / "cli.md").read_text()
    added = set(generate.commands()) - set(COMMANDS)
    assert added >= {"audit"}
    index = (DOCS / "reference" / "index.md").read_text()
    for command in added:
        assert f"`{command}`" in index, "the table of commands lacks it"
        section = page.partition(f"## mleredux {command}\n")[2].partition("\n## ")[0]
        assert f"Usage: mleredux {command}" in section
        assert "Comes with `mleredux-" in section


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    page = (DOCS / "reference" / "cli.md").read_text()
    section = page.partition(f"## mleredux {command}\n")[2].partition("\n## ")[0]
    assert f"Usage: mleredux {command}" in section
    assert f"`{command}`" in (DOCS / "reference" / "index.md").read_text(), "the table of commands lacks it"


def test_everything_public_is_documented() -> None:
    page = (DOCS / "reference" / "sdk.md").read_text()
    missing = [name for name in mleredux.__all__ if not name.startswith("_") and name not in page]
    assert missing == []


def test_every_state_cause_and_event_is_documented() -> None:
    page = (DOCS / "reference" / "runs.md").read_text()
    assert [word for word in (*State, *CAUSES) if f"`{word}`" not in page] == []
    schema = TypeAdapter(Known).json_schema(mode="serialization")["$defs"].values()
    emitted = {shape["properties"]["type"]["const"] for shape in schema if "type" in shape.get("properties", {})}
    assert len(emitted) >= 8
    assert [name for name in sorted(emitted) if f"| `{name}` |" not in page] == []


def test_every_fixed_variant_is_documented(generate: ModuleType) -> None:
    page = (DOCS / "reference" / "variants.md").read_text()
    variants = generate.fixed_variants()
    assert len(variants) >= 39
    for name, variant in variants.items():
        assert variant.wrong and variant.done, f"{name}+fixed does not say what was wrong or what was done"
        assert f"| `{name}` | {variant.wrong} | {variant.done} |" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target and not target.endswith("_static/rooms.svg"):  # drawn when the site is built
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_image_has_colors_for_dark_pages() -> None:
    images = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"""(?:!\[[^\]]*\]\(|src=")([^)"#\s]+\.(?:svg|png))""", page.read_text())
        if "://" not in target and not target.endswith("_static/rooms.svg")
    }
    assert {DOCS / "_static" / name for name in ("first-run-light.png", "findings-automl.svg", "flow.svg")} <= images
    for image in images:
        dark = image.with_name(image.name.replace("-light", "-dark"))
        known = "prefers-color-scheme: dark" in image.read_text() if image.suffix == ".svg" else dark != image
        assert known and dark.is_file(), f"{image.name} has no colors for dark pages"


def test_the_walks_name_modules_that_exist() -> None:
    page = (DOCS / "concepts" / "inside.md").read_text()
    names = set(re.findall(r"`(mleredux(?:_\w+)?(?:\.\w+)+)`", page))
    assert len(names) > 40
    assert [name for name in sorted(names) if find_spec(name) is None] == []


def test_the_first_script_solves_every_starter_task(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "script.md").read_text()
    (tmp_path / "solve.py").write_text(page.partition("<<'END'\n")[2].partition("\nEND\n")[0])
    tasks = [task["id"] for task in mleredux.tasks() if "starter" in task.get("sets", ())]
    assert len(tasks) >= 5
    for task in tasks:
        data = mleredux.prepare(task, data_dir=tmp_path / "data")
        environment = {**os.environ, "MLEREDUX_DATA_DIR": str(data.public)}
        subprocess.run([sys.executable, "solve.py"], cwd=tmp_path, env=environment, check=True)
        graded = mleredux.grade(tmp_path / "submission.csv", task, data_dir=tmp_path / "data")
        assert graded.valid_submission and graded.percentile > 20, (task, graded)


INTERNAL = {
    *("CHECK_SECRET", "DESCRIBING_PLUGINS", "OWNER", "PYTHON", "TESTING_STARTS", "TESTING_WORK"),
    *("GATEWAY", "UPLOADED_AGENTS"),
}
"""Variables between processes of mleredux itself, and parts of names in patterns."""


def test_every_environment_variable_is_documented() -> None:
    pattern = re.compile(r"\bMLEREDUX_([A-Z][A-Z0-9_]*[A-Z0-9])\b")
    sources = [path for folder in ("core", "kits", "plugins") for path in (ROOT / folder).rglob("src/**/*.py")]
    used = {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}
    documented = set(pattern.findall((DOCS / "reference" / "environment.md").read_text()))
    assert documented - used == set(), "no code reads these"
    assert used - documented - INTERNAL == set(), "the page lacks these"


def test_the_extras_of_the_core_are_documented() -> None:
    """The table in `packages.md` has each extra that installs a set of plugins."""
    declared = tomllib.loads((ROOT / "core/pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (DOCS / "concepts" / "packages.md").read_text()
    documented = set(re.findall(r"`mleredux\[(\w+)\]`", page))
    assert documented <= declared.keys(), "these do not exist"
    assert {
        name for name, needed in declared.items() if any("plugin" in each or len(needed) > 1 for each in needed)
    } <= documented


def test_the_number_of_competitions_and_techniques_is_the_documented_one() -> None:
    catalogue = Catalogue()
    plugins = [entry.plugin.distribution for entry in catalogue.entries("tasks").values()]
    assert plugins.count("mleredux-competition-mlebench") == 82, "the README and packages.md say 82"
    page = (DOCS / "concepts" / "techniques.md").read_text().partition("## Names")[0]
    entries = catalogue.entries("techniques").items()
    bundled = {name for name, entry in entries if entry.plugin.distribution == "mleredux-techniques"}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == bundled


def test_the_tables_of_members_are_complete() -> None:
    """How-to pages that list what a plugin's object must have."""
    for page, role in (("sandbox", Sandbox), ("executor", Executor)):
        text = (DOCS / "how-to" / f"{page}.md").read_text()
        assert [name for name in members_of(role) if f"`{name}" not in text] == [], page


def test_lists_name_every_item() -> None:
    """Files of a run, checks of the conformance kit, markers of tests, modules of the plugin API, and measures."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    modules = [module.name for module in pkgutil.iter_modules(plugin.__path__)]
    checks = [name for name in mleredux_testing.__all__ if name.startswith("check_")]
    lists = {
        "docs/reference/runs.md": [f"| `{name}` |" for name in _OWN_FILES],
        "docs/reference/plugins.md": [f"| `{name}(" for name in checks],
        "CONTRIBUTING.md": [marker.partition(":")[0] for marker in settings["markers"]],
        "core/src/mleredux/plugin/__init__.py": [f"`{name}`" for name in modules],
        "docs/how-to/compare.md": [f"`{name}`" for name in MEASURES],
        "docs/how-to/experiments.md": [f"`{name}" for name in {*Arm.model_fields, *Stop.model_fields} - {"contexts"}],
        "docs/how-to/reinforcement-learning.md": [f"| `{name}`" for name in REWARDS],
        "docs/how-to/findings.md": [f"`{name}`" for name in ARMS],
    }
    for page, names in lists.items():
        text = (ROOT / page).read_text()
        assert names and [name for name in names if name not in text] == [], page


def test_the_server_of_a_page_has_one_address() -> None:
    page = (DOCS / "how-to" / "service.md").read_text()
    assert len(set(re.findall(r"127\.0\.0\.1:(\d+)", page))) == 1


def members_of(role: type) -> list[str]:
    names = {*vars(role), *inspect.get_annotations(role)}
    return sorted(name for name in names if name[0] != "_")
