"""What plugins may import is documented, says since when it is there, and is all that ours import."""

from __future__ import annotations

import ast
import configparser
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import pytest
from mleredux._core.moved import NAMES

ROOT = Path(__file__).parents[1]


def _surface() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_surface", ROOT / "docs" / "surface.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


surface = _surface()


def test_every_public_name_says_what_it_is() -> None:
    described = {name: surface.described(*name.rsplit(".", 1))[2] for name in surface.public_names()}
    assert [name for name, text in sorted(described.items()) if not text.endswith((".", ":"))] == []
    assert len(described) > 150


def test_every_member_of_a_public_class_says_what_it_is() -> None:
    """Methods, properties and fields, inherited ones included: what autodoc puts on the pages."""
    assert surface.undocumented() == []
    classes = {value for module in (*surface.facades(), *surface.APPLICATIONS) for value in _classes(module)}
    assert sum(len(surface.members(value)) for value in classes) > 1200


def test_no_docstring_of_what_is_public_names_a_private_path() -> None:
    modules = [importlib.import_module(name) for name in (*surface.facades(), *surface.APPLICATIONS)]
    values = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in surface.names_of(module.__name__)
    }
    texts = {module.__name__: module.__doc__ or "" for module in modules}
    texts |= {name: inspect.getdoc(value) or "" for name, value in values.items()}
    for name, value in values.items():
        if inspect.isclass(value):
            texts |= {f"{name}.{member}": surface.text_of(value, member) for member in surface.members(value)}
    private = re.compile(r"mleredux\w*(?:\.\w+)*\._|\b_core\b|\b_kit\b")
    assert len(texts) > 1500 and [name for name, text in texts.items() if private.search(text)] == []


def _classes(module: str) -> list[type]:
    values = [getattr(importlib.import_module(module), name) for name in surface.names_of(module)]
    return [value for value in values if inspect.isclass(value)]


def test_every_public_name_says_since_when_it_is_there_and_none_goes_away_in_silence() -> None:
    since = surface.known_since()
    there = {name for name, version in since.items() if "removed" not in version}
    assert surface.public_names() - there == set(), "write them: python docs/surface.py"
    assert there - surface.public_names() == set(), "a removed name stays in since.json: `0.2, removed in 0.4`"
    assert all(re.fullmatch(r"\d+\.\d+(, removed in \d+\.\d+)?", version) for version in since.values())


REMOVED = sorted({name for name, version in surface.known_since().items() if "removed" in version} | NAMES.keys())


@pytest.mark.parametrize("name", REMOVED)
def test_names_that_moved_to_kits_are_importable_from_their_old_module_with_a_warning(name: str) -> None:
    module, _, public = name.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{re.escape(name)} is now mleredux") as warned:
        value = getattr(importlib.import_module(module), public)
    (replacement,) = re.findall(r"is now ([\w.]+)", str(warned[0].message))
    home, _, present = replacement.rpartition(".")
    assert value is getattr(importlib.import_module(home), present)
    assert warned[0].filename == __file__


def test_other_names_of_these_modules_are_missing_as_usual_and_so_is_a_kit() -> None:
    for module in sorted({name.rpartition(".")[0] for name in REMOVED}):
        for name in ("nothing", "__wrapped__"):
            with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{name}'"):
                getattr(importlib.import_module(module), name)
    for module, name, kit in (("agent", "llm_agent", "agents"), ("grader", "define", "tables")):
        code = f"import sys; sys.modules['mleredux_{kit}'] = None; from mleredux.plugin.{module} import {name}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"Install it with `pip install mleredux-{kit}`." in done.stderr


def test_nothing_here_uses_names_that_moved() -> None:
    names: dict[str, set[str]] = {}
    for name in REMOVED:
        names.setdefault(name.rpartition(".")[0], set()).add(name.rpartition(".")[2])
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in listed.splitlines() if (ROOT / path).exists()}
    used = [
        f"{path}: {alias.name}"
        for path, text in texts.items()
        if "mleredux.plugin" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in names.get(node.module or "", ())
    ]
    assert len(texts) > 1000 and used == []


@pytest.mark.parametrize("name", surface.facades())
def test_the_example_of_each_module_runs(name: str) -> None:
    text = inspect.getdoc(importlib.import_module(name)) or ""
    prose, mark, code = text.partition("::\n\n")
    assert len(prose.splitlines()) >= 3 and mark, "it says who uses it, and shows how"
    exec(compile(inspect.cleandoc(code), name, "exec", dont_inherit=True), {"__name__": "example"})


@pytest.mark.parametrize("name", surface.facades())
def test_importing_a_module_costs_little(name: str) -> None:
    """What agents, tasks and commands import when they are listed; data and engines come when they are used."""
    heavy = ["numpy", "pandas", "sklearn", "docker", "matplotlib", "aiohttp", "requests", "importlib_metadata"]
    if name.rpartition(".")[2] not in ("command", "host"):
        heavy += ["click", "rich", "psutil"]
    code = f"import sys, {name}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_models_need_pydantic_alone() -> None:
    """Programs that read runs import them without the rest of mleredux."""
    names = sorted(path.stem for path in (ROOT / "core/src/mleredux/models").glob("[!_]*.py"))
    code = f"""if True:
        import importlib, sys
        for name in {names}:
            importlib.import_module("mleredux.models." + name)
        ours = {{name for name in sys.modules if name.partition(".")[0] == "mleredux"}}
        others = {{"click", "importlib_metadata", "pluggy", "psutil", "rich"}} & set(sys.modules)
        print(sorted(name for name in ours if not name.startswith("mleredux.models")), sorted(others))"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "['mleredux'] []\n"


def test_examples_templates_and_docs_show_only_what_is_public() -> None:
    shown = [
        *ROOT.glob("examples/**/*.py"),
        *ROOT.glob("kits/testing/src/mleredux_testing/templates/**/*.tmpl"),
        *ROOT.glob("**/*.md"),
    ]
    own = [path for path in shown if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]
    assert len(own) > 60
    assert [str(path) for path in own if re.search(r"(import|from) mleredux\._core", path.read_text())] == []


def test_what_imports_what_is_as_the_contracts_say() -> None:
    """`lint-imports`, with the contracts of `.importlinter`."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_contracts_name_every_plugin_and_kit() -> None:
    packages = {path.parent.name for path in ROOT.glob("plugins/**/src/mleredux_*/__init__.py")}
    kits = {path.parent.name for path in ROOT.glob("kits/*/src/*/__init__.py")}
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    lists = {"": "root_packages", ":contract:public": "source_modules", ":contract:apart": "modules"}
    for section, key in {**lists, ":contract:core": "forbidden_modules", ":contract:kits": "forbidden_modules"}.items():
        assert packages - set(contracts[f"importlinter{section}"][key].split()) == set(), section
    lists = {"": "root_packages", ":contract:core": "forbidden_modules", ":contract:kits-apart": "modules"}
    for section, key in {**lists, ":contract:kits": "source_modules"}.items():
        assert kits - set(contracts[f"importlinter{section}"][key].split()) == set(), section
    assert len(packages) > 30


def test_every_module_of_the_core_and_every_plugin_is_in_a_layer() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = {
        name: {
            name
            for layer in contracts[f"importlinter:contract:{name}"]["layers"].split("\n")
            for name in layer.split(" : ")
        }
        for name in ("rooms", "repository")
    }
    core = {path.stem for path in (ROOT / "core/src/mleredux").glob("*.py")} - {"__init__"}
    core |= {path.parent.name for path in (ROOT / "core/src/mleredux").glob("*/__init__.py")} - {"_core"}
    rooms = {path.stem for path in (ROOT / "core/src/mleredux/_core").iterdir() if path.name[0] != "_"}
    named = {f"mleredux.{name}" for name in core} | {f"mleredux._core.{name}" for name in rooms}
    assert named == layers["rooms"] - {""}
    plugins = {path.parent.name for path in ROOT.glob("plugins/**/src/mleredux_*/__init__.py")}
    assert plugins | {"mleredux", "mleredux_agentkit"} <= layers["repository"]


@pytest.mark.parametrize(
    "package", ["mleredux", "mleredux_agents", "mleredux_rollout", "mleredux_tables", "mleredux_testing"]
)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    """Imports inside functions count too; those for type checkers alone do not."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the modules
