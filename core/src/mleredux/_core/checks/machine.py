"""Checks of this machine's setup, with suggested fixes."""

from __future__ import annotations

import contextlib
import json
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
from mleredux._core.executors.protocol import Executor
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import Finding, Sandbox
from mleredux._core.sandboxes.slots import machine
from mleredux._core.store import RunStore
from mleredux.errors import MlereduxError, one_line

OLDEST_PYTHON = (3, 11)
LOW_DISK_GB = 5.0
LOW_MEMORY_MB = 2048
_PACKAGES = ("mleredux", "click", "pluggy", "psutil", "pydantic", "rich")


@dataclass(frozen=True)
class Diagnosis:
    """One finding and its severity.

    Attributes:
        area: `python`, `plugins`, `sandboxes`, `executors`, `disk`, `data`, `memory`, `kaggle`.
        required: Whether runs are impossible without it; otherwise it is a warning.
    """

    area: str
    finding: Finding
    required: bool = False

    @property
    def level(self) -> str:
        """`ok`, `warning` or `error`."""
        return "ok" if self.finding.ok else "error" if self.required else "warning"

    def as_json(self) -> dict[str, Any]:
        """JSON-able."""
        found = self.finding
        return {
            "area": self.area,
            "name": found.name,
            "level": self.level,
            "message": found.message,
            "remedy": None if found.ok else found.remedy,
        }


def diagnose(catalogue: Catalogue, runs: RunStore, data: DataStore) -> list[Diagnosis]:
    """Check everything that all runs, or some runs, need on this machine."""
    return [
        *_python(),
        *_plugins(catalogue),
        *_sandboxes(catalogue),
        *_executors(catalogue),
        *_disk("runs", runs.path, "--runs-dir"),
        *_disk("data", data.path, "--data-dir"),
        _prepared(data),
        _memory(),
        _kaggle(),
    ]


def healthy(found: list[Diagnosis]) -> bool:
    """Whether runs work on this machine."""
    return all(diagnosis.level != "error" for diagnosis in found)


def _python() -> list[Diagnosis]:
    version = platform.python_version()
    new_enough = sys.version_info[:2] >= OLDEST_PYTHON
    found = [Finding("python", new_enough, f"Python {version} in {sys.prefix}.", "Install Python 3.11 or newer.")]
    missing = []
    shown = []
    for name in _PACKAGES:
        try:
            shown.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    message = f"{', '.join(missing)} missing." if missing else f"{', '.join(shown)}."
    found.append(Finding("packages", not missing, message, "Install mleredux again."))
    return [Diagnosis("python", finding, required=True) for finding in found]


def _plugins(catalogue: Catalogue) -> list[Diagnosis]:
    catalogue.load_all()
    found = []
    for plugin in catalogue.plugins:
        found += [
            Diagnosis("plugins", Finding(plugin.name, False, error, _remedy_of(plugin.distribution)))
            for error in plugin.errors
        ]
    working = [plugin.name for plugin in catalogue.plugins if plugin.state == "loaded"]
    blocked = [plugin.name for plugin in catalogue.plugins if plugin.state == "blocked"]
    rest = f"; blocked: {', '.join(blocked)}" if blocked else ""
    found.append(Diagnosis("plugins", Finding("loaded", True, f"{', '.join(working)}{rest}.")))
    for kind, example in (("tasks", "mleredux-competition-starter"), ("agents", "mleredux-agent-baseline")):
        number = len(catalogue.entries(kind))
        finding = Finding(
            kind, number > 0, f"{number} {kind} are installed.", f"Install a package that has some, e.g. {example}."
        )
        found.append(Diagnosis("plugins", finding, required=True))
    return found


def _remedy_of(distribution: str | None) -> str:
    return f"See `mleredux plugins`; fix, upgrade or uninstall {distribution or 'it'}."


def _sandboxes(catalogue: Catalogue) -> list[Diagnosis]:
    """The findings of each sandbox's own check. One of them must work; problems of the others are warnings."""
    looked = _checked(catalogue.entries("sandboxes"), catalogue.sandbox)
    found = [Diagnosis("sandboxes", finding) for findings in looked for finding in findings]
    if not any(all(finding.ok for finding in findings) for findings in looked):
        finding = Finding("sandboxes", False, "No sandbox works on this machine.", "Fix one of those above.")
        found.append(Diagnosis("sandboxes", finding, required=True))
    return found


def _executors(catalogue: Catalogue) -> list[Diagnosis]:
    """The findings of each executor's own check; runs need none of them."""
    looked = _checked(catalogue.entries("executors"), catalogue.executor)
    return [Diagnosis("executors", finding) for findings in looked for finding in findings]


def _checked(names: Iterable[str], find: Callable[[str], Sandbox | Executor]) -> list[list[Finding]]:
    """The findings of each one's own check."""
    looked = []
    for name in names:
        try:
            looked.append(list(find(name).check()))
        except MlereduxError as error:
            looked.append([Finding(name, False, error.message, error.hint)])
        except Exception as error:  # a plugin may raise anything; it becomes the finding
            remedy = "Upgrade or uninstall its package."
            looked.append([Finding(name, False, f"Its check failed: {one_line(error)}.", remedy)])
    return looked


def _disk(name: str, folder: Path, option: str) -> list[Diagnosis]:
    """Check whether a folder is writable, and its free disk space."""
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    other = f"Choose another folder with {option}."
    can = "is writable" if writable else f"is not writable (no permission to write to {there})"
    found = [
        Diagnosis("disk", Finding(f"{name} folder", writable, f"{folder.absolute()} {can}.", other), required=True)
    ]
    free = shutil.disk_usage(there).free / 1e9
    message = f"{free:.1f} GB are free for {name}; below {LOW_DISK_GB:g} GB is low."
    room = Finding(
        f"{name} disk", free >= LOW_DISK_GB, message, f"Free some disk space, or choose another folder with {option}."
    )
    return [*found, Diagnosis("disk", room)]


def _prepared(data: DataStore) -> Diagnosis:
    """Check whether files of prepared data tell nothing by their inodes."""
    older = []
    for folder in sorted(data.path.glob("*/prepared/public")):
        record = {}
        with contextlib.suppress(OSError, ValueError):
            record = json.loads((folder.parent / "prepared.json").read_bytes())
        if not record.get("neutral"):
            older.append(folder.parts[-3])
    some = f"{', '.join(older[:3])}{' and others' if older[3:] else ''}"
    message = f"Inodes of {some} may tell classes: another program or version prepared them."
    remedy = "Prepare them again: `mleredux prepare TASK --force`."
    return Diagnosis("data", Finding("files", not older, message if older else "Files tell no class.", remedy))


def _memory() -> Diagnosis:
    has = machine()
    gpus = f"{len(has.gpus)} GPUs" if has.gpus else "no GPU"
    message = f"{has.cpus:g} CPUs, {has.memory_mb:,} MB of memory and {gpus} for agents."
    remedy = f"Below {LOW_MEMORY_MB:,} MB, agents that train models may fail; request less with --memory."
    return Diagnosis("memory", Finding("machine", has.memory_mb >= LOW_MEMORY_MB, message, remedy))


def _kaggle() -> Diagnosis:
    """Check whether there are Kaggle credentials; they are never shown."""
    where = _kaggle_place()
    if where:
        return Diagnosis("kaggle", Finding("credentials", True, f"Kaggle credentials found in {where}."))
    return Diagnosis(
        "kaggle",
        Finding(
            "credentials",
            False,
            "No Kaggle credentials found; only competitions whose data comes from Kaggle need them.",
            "Create a token on https://www.kaggle.com/settings for ~/.kaggle/access_token or KAGGLE_API_TOKEN; "
            "or prepare from your own files: `mleredux prepare TASK --from FOLDER_OR_ZIP`.",
        ),
    )


def _kaggle_place() -> str | None:
    if os.environ.get("KAGGLE_API_TOKEN"):
        return "KAGGLE_API_TOKEN"
    if os.environ.get("KAGGLE_USERNAME") and os.environ.get("KAGGLE_KEY"):
        return "KAGGLE_USERNAME and KAGGLE_KEY"
    folders = [Path(os.environ["KAGGLE_CONFIG_DIR"])] if os.environ.get("KAGGLE_CONFIG_DIR") else []
    for folder in (*folders, Path.home() / ".kaggle", Path.home() / ".config" / "kaggle"):
        for name in ("access_token", "kaggle.json"):
            path = folder / name
            try:
                if path.is_file() and path.stat().st_size > 0:
                    return str(path)
            except OSError:
                continue
    return None
