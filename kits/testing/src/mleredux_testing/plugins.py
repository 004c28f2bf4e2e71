"""Checks that every plugin must pass."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.resources import files
from pkgutil import resolve_name

import mleredux
from mleredux._core.plugins import KINDS, Catalogue, Plugin, current
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.plugins.loader import implemented_hooks
from mleredux._core.stages.produce import PRODUCERS
from mleredux.hookspecs import CONTRACT_VERSION
from mleredux.models.base import ID_PATTERN
from mleredux.models.task import TASK_ID_PATTERN

from mleredux_testing.findings import Findings
from mleredux_testing.toys import TOY_PLUGIN

_PAGES = "mleredux_register_pages"
_COMMAND_PATTERN = r"^[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)?$"

HEAVY = ("docker", "jinja2", "matplotlib", "numpy", "pandas", "PIL", "scipy", "sklearn", "tensorflow", "torch")
"""Packages that the top module of a plugin must not import."""

_IMPORT = """
import importlib, json, sys
target, heavy = json.loads(sys.argv[1])
importlib.import_module(target)
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


def check_plugin(name: str) -> Findings:
    """Check that a plugin loads, follows the contract, and does not import heavy packages until it is used.

    Args:
        name: The plugin's name, as `mleredux plugins` shows it.

    Raises:
        NotConforming: With all problems.
    """
    findings = Findings(f"Plugin {name}")
    catalogue = Catalogue()
    plugin = next((plugin for plugin in catalogue.plugins if plugin.name == name), None)
    if plugin is None:
        findings.bad(
            "found",
            "it is not among the plugins of this environment.",
            'Install its package; its entry point belongs in [project.entry-points.mleredux] as `NAME = "module"`.',
        )
        return findings.close()
    with findings.looking_at("loads"):
        loaded = catalogue.load_plugin(plugin)
        if not findings.expect("loads", loaded, " ".join(plugin.errors) or f"its state is {plugin.state}."):
            return findings.close()
        _check_contract(findings, plugin)
        _check_registered(findings, catalogue, plugin)
        _check_imports(findings, plugin)
        if _PAGES in (hooks := implemented_hooks(plugin, catalogue.manager)):
            _check_pages(findings, plugin)
        if not set(PRODUCERS).isdisjoint(hooks):
            _check_producers(findings, plugin)
    return findings.close()


def _check_contract(findings: Findings, plugin: Plugin) -> None:
    stated = getattr(plugin.object, "mleredux_contract", None)
    findings.expect(
        "contract",
        stated in (None, CONTRACT_VERSION),
        f"it declares contract {stated}, but this version of mleredux supports {CONTRACT_VERSION}.",
        f"Write `mleredux_contract = {CONTRACT_VERSION}` next to its hooks.",
    )


def _check_registered(findings: Findings, catalogue: Catalogue, plugin: Plugin) -> None:
    for kind in KINDS:
        pattern = TASK_ID_PATTERN if kind == "tasks" else ID_PATTERN
        pattern = _COMMAND_PATTERN if kind == "commands" else pattern
        for entry in catalogue.entries(kind).values():
            if entry.plugin is not plugin:
                continue
            findings.expect(
                f"id of {entry.id}", re.fullmatch(pattern, entry.id), f"{entry.id!r} does not match {pattern}."
            )
            with findings.looking_at(f"{kind}: {entry.id}"):
                catalogue.get(kind, entry.id)
    for message in plugin.errors:
        findings.bad("declarations", message)


def _check_producers(findings: Findings, plugin: Plugin) -> None:
    """Check that a plugin creates its artifacts for a run of a toy agent."""
    before = current()
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, ExitStack() as stack:
        own = [plugin.target] if plugin.source in ("file", "option") else []
        set_current(Catalogue(load=[TOY_PLUGIN, *own]))
        stack.callback(set_current, before)
        runs, data = f"{folder}/runs", f"{folder}/data"
        run = mleredux.run("toy", "toy-nearest", sandbox="process", runs_dir=runs, data_dir=data)
        warnings = [event.data for event in run.events() if event.type == "warning"]
    wrong = [warning["message"] for warning in warnings if warning["plugin"] == plugin.name]
    findings.expect("artifacts", not wrong, " ".join(wrong))


def _check_pages(findings: Findings, plugin: Plugin) -> None:
    """Check that the functions and templates of a plugin's pages, panels and actions exist."""
    with findings.looking_at("pages"):
        for item in getattr(plugin.object, _PAGES)():
            name = getattr(item, "title", None) or item.path
            with findings.looking_at(f"function of {name}"):
                function = resolve_name(item.function)
                findings.expect(f"function of {name}", callable(function), f"{item.function} is not a function.")
            if template := getattr(item, "template", None):
                path = files(item.function.partition(":")[0].partition(".")[0]) / "templates" / template
                rule = "Put it into the folder `templates` of the function's package, which must be part of the wheel."
                if findings.expect(f"template of {name}", path.is_file(), f"{path} does not exist.", rule):
                    with findings.looking_at(f"template of {name}"), suppress(ImportError):
                        import_module("jinja2").Environment().parse(path.read_text(encoding="utf-8"))


def _check_imports(findings: Findings, plugin: Plugin) -> None:
    request = json.dumps([plugin.target.partition(":")[0], HEAVY])
    process = subprocess.run([sys.executable, "-c", _IMPORT, request], capture_output=True, text=True, timeout=120)
    if not findings.expect("imported alone", process.returncode == 0, process.stderr.strip()[-500:]):
        return
    importing = json.loads(process.stdout.splitlines()[-1])
    findings.expect(
        "top module",
        not importing,
        f"importing {plugin.target} imports {', '.join(importing)}.",
        "Import them inside the functions that need them, or in modules that Refs point to.",
    )
