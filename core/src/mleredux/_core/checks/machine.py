"""Checks of this machine's setup, with suggested fixes."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import Finding
from mleredux._core.sandboxes.slots import GPUS_VARIABLE, gpu_uuids, machine
from mleredux._core.store import RunStore
from mleredux._core.store.files import read_record
from mleredux.errors import MlereduxError, foreign_code
from mleredux.models.formats import counted, plain

OLDEST_PYTHON = (3, 11)
LOW_DISK_GB = 5.0
LOW_MEMORY_MB = 2048
_PACKAGES = ("mleredux", "click", "pluggy", "psutil", "pydantic", "rich")


@dataclass(frozen=True)
class Diagnosis:
    """One finding and its severity.

    Attributes:
        area: `python`, `plugins`, `sandboxes`, `executors`, `disk`, `data`, `memory`, or one that a plugin checks.
        required: Whether runs need it; findings about optional parts are warnings.
    """

    area: str
    finding: Finding
    required: bool = False

    @property
    def level(self) -> str:
        """`ok`, `warning` or `error`."""
        return "ok" if self.finding.ok else "error" if self.required else "warning"

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis in JSON-serializable form."""
        finding = self.finding
        return {
            "area": self.area,
            "name": finding.name,
            "level": self.level,
            "message": finding.message,
            "remedy": None if finding.ok else finding.remedy,
        }


def diagnose(catalogue: Catalogue, runs: RunStore, data: DataStore) -> list[Diagnosis]:
    """Check everything that all or some runs need on this machine."""
    by_sandbox = checked(catalogue.entries("sandboxes"), lambda name: catalogue.sandbox(name).check())
    # Runs do not need executors, so their findings are not required.
    by_executor = checked(catalogue.entries("executors"), lambda name: catalogue.executor(name).check())
    names = [name for name in catalogue.entries("commands") if name.startswith("doctor ")]
    by_command = checked(names, lambda name: catalogue.get("commands", name).callback())
    of_plugins = [(name.removeprefix("doctor "), findings) for name, findings in zip(names, by_command, strict=True)]
    return [
        *_python(),
        *_plugins(catalogue),
        *require_one("sandboxes", by_sandbox, "No sandbox works on this machine."),
        *(Diagnosis("executors", finding) for findings in by_executor for finding in findings),
        *_disk("runs", runs.path, "--runs-dir"),
        *_disk("data", data.path, "--data-dir"),
        _prepared(data),
        _memory(),
        *(Diagnosis(area, finding) for area, findings in of_plugins for finding in findings),
    ]


def healthy(diagnoses: list[Diagnosis]) -> bool:
    """Return whether runs work on this machine."""
    return all(diagnosis.level != "error" for diagnosis in diagnoses)


def _python() -> list[Diagnosis]:
    new_enough, message = sys.version_info[:2] >= OLDEST_PYTHON, f"Python {platform.python_version()} in {sys.prefix}."
    findings = [Finding("python", new_enough, message, "Install Python 3.11 or newer.")]
    versions = {name: next((item.version for item in metadata.distributions(name=name)), None) for name in _PACKAGES}
    missing = [name for name, version in versions.items() if version is None]
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    message = f"{', '.join(missing)} missing." if missing else f"{shown}."
    findings.append(Finding("packages", not missing, message, "Install mleredux again."))
    return [Diagnosis("python", finding, required=True) for finding in findings]


def _plugins(catalogue: Catalogue) -> list[Diagnosis]:
    catalogue.load_all()
    diagnoses = []
    for plugin in catalogue.plugins:
        remedy = f"See `mleredux plugins`; fix, upgrade or uninstall {plugin.distribution or 'it'}."
        diagnoses += [Diagnosis("plugins", Finding(plugin.name, False, error, remedy)) for error in plugin.errors]
    working = [plugin.name for plugin in catalogue.plugins if plugin.state == "loaded"]
    blocked = [plugin.name for plugin in catalogue.plugins if plugin.state == "blocked"]
    rest = f"; blocked: {', '.join(blocked)}" if blocked else ""
    diagnoses.append(Diagnosis("plugins", Finding("loaded", True, f"{', '.join(working)}{rest}.")))
    for kind, example in (("tasks", "mleredux-competition-starter"), ("agents", "mleredux-agent-baseline")):
        number = len(catalogue.entries(kind))
        message, remedy = f"{number} {kind} are installed.", f"Install a package that has some, e.g. {example}."
        diagnoses.append(Diagnosis("plugins", Finding(kind, number > 0, message, remedy), required=True))
    return diagnoses


def require_one(area: str, by_sandbox: list[list[Finding]], message: str) -> list[Diagnosis]:
    """Return the findings of several sandboxes as warnings, and an error with this message if none of them works."""
    diagnoses = [Diagnosis(area, finding) for findings in by_sandbox for finding in findings]
    if not any(all(finding.ok for finding in findings) for findings in by_sandbox):
        diagnoses.append(Diagnosis(area, Finding("sandboxes", False, message, "Fix one of the above."), required=True))
    return diagnoses


def checked(names: Iterable[str], check: Callable[[str], Iterable[Finding]]) -> list[list[Finding]]:
    """Return the findings of each object's own check."""
    results = []
    for name in names:
        try:
            with foreign_code(MlereduxError, "Its check failed", "Upgrade or uninstall its package."):
                results.append(list(check(name)))
        except MlereduxError as error:
            results.append([Finding(name, False, error.message, error.hint)])
    return results


def _disk(name: str, folder: Path, option: str) -> list[Diagnosis]:
    """Check whether a folder is writable and how much disk space is free."""
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    other = f"Choose another folder with {option}."
    can = "is writable" if writable else f"is not writable (no permission to write to {there})"
    access = Finding(f"{name} folder", writable, f"{folder.absolute()} {can}.", other)
    free = shutil.disk_usage(there).free / 1e9
    message = f"{free:.1f} GB is free for {name}; {plain(LOW_DISK_GB)} GB or more is recommended."
    room = Finding(
        f"{name} disk", free >= LOW_DISK_GB, message, f"Free some disk space, or choose another folder with {option}."
    )
    return [Diagnosis("disk", access, required=True), Diagnosis("disk", room)]


def _prepared(data: DataStore) -> Diagnosis:
    """Check whether the inodes of prepared files reveal anything."""
    folders = sorted(data.path.glob("*/prepared/public"))
    older = [path.parts[-3] for path in folders if not read_record(path.parent / "prepared.json").get("neutral")]
    some = f"{', '.join(older[:3])}{' and others' if older[3:] else ''}"
    message = f"The inodes of {some} may reveal classes, because other software, or another version, prepared them."
    remedy = "Prepare them again: `mleredux prepare TASK --force`."
    return Diagnosis("data", Finding("files", not older, message if older else "Inodes do not reveal classes.", remedy))


def _memory() -> Diagnosis:
    has = machine()
    gpus = counted(len(has.gpus), "GPU") if has.gpus else "no GPU"
    message = f"{plain(has.cpus)} CPUs, {has.memory_mb:,} MB of memory and {gpus} for agents."
    remedy = f"Below {LOW_MEMORY_MB:,} MB, agents that train models may fail; request less with --memory."
    if broken := None if os.environ.get(GPUS_VARIABLE) else gpu_uuids()[1]:
        message, remedy = f"{message} {broken}", "Repair the driver, or name the devices in MLEREDUX_GPUS."
    return Diagnosis("memory", Finding("machine", has.memory_mb >= LOW_MEMORY_MB and not broken, message, remedy))
