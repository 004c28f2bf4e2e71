"""Copy the source of the distributions that grade a task, for machines that can't install them."""

from __future__ import annotations

import importlib.util
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.task import Task
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER, PACKED = "packages", "packages.tar.xz"
_CORE = "mleredux"
_KITS = "mleredux.kits"


def graders_of(task: Task) -> set[str]:
    """Return the names of the distributions that register a task, its technique and its grader.

    Raises:
        MlereduxError: A file or module without a distribution registers one of these.
    """
    catalogue = current()
    technique, _, base = task.id.rpartition("@")
    names = [("tasks", base.partition("+")[0])]
    if isinstance(task.metric.grader, str):
        names.append(("graders", task.metric.grader))
    names += [("techniques", part.partition("+")[0]) for part in technique.split("@") if part]
    packages = {
        entry.plugin.target.partition(":")[0].partition(".")[0]: entry.plugin.distribution
        for kind in ("tasks", "techniques")
        for entry in catalogue.entries(kind).values()
    }
    # Variants and generated tasks are created by functions of plugins that register other tasks.
    makers = (type(task), getattr(task.prepare, "func", task.prepare))
    modules = [getattr(maker, "__module__", "").partition(".")[0] for maker in makers]
    owners = {owner for module in modules if (owner := packages.get(module))}
    for kind, name in names:
        entry = catalogue.entries(kind).get(name)
        if entry is None and kind == "tasks" and owners:
            continue
        if entry is None or entry.plugin.distribution is None:
            raise MlereduxError(
                f"{name!r} is not part of an installed distribution.", hint="Install its package, then export the task."
            )
        owners.add(entry.plugin.distribution)
    return owners


def copy_packages(names: Iterable[str], target: Path) -> list[str]:
    """Copy the source and metadata of distributions, and of the plugins, kits and core that they need, into a folder.

    Returns:
        The requirements for other distributions, pinned to the versions installed here, sorted.
    """
    waiting, seen, pinned = [(_CORE, frozenset[str]()), *((name, frozenset[str]()) for name in names)], set(), set()
    while waiting:
        name, extras = waiting.pop()
        if (canonicalize_name(name), extras) in seen:
            continue
        seen.add((canonicalize_name(name), extras))
        package = distribution(name)
        tops = _tops(package)
        if not tops:
            chosen = f"[{','.join(sorted(extras))}]" if extras else ""
            pinned.add(f"{package.name}{chosen}=={package.version}")
            continue
        for top in tops:
            _copy_source(top, target)
        _copy_metadata(package, target)
        for text in package.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                waiting.append((needed.name, frozenset(needed.extras)))
    return sorted(pinned, key=str.lower)


@lru_cache(maxsize=32)
def pack_packages(names: frozenset[str]) -> tuple[list[str], bytes]:
    """Return the requirements for other distributions as `copy_packages` does, and an archive with the folder
    `packages`; the archive has the same bytes each time.
    """
    with tempfile.TemporaryDirectory(prefix="mleredux-packages-") as scratch:
        folder, path = Path(scratch) / FOLDER, Path(scratch) / PACKED
        pinned = copy_packages(names, folder)
        with tarfile.open(path, "w:xz", preset=6) as archive:
            for file in sorted(file for file in folder.rglob("*") if file.is_file()):
                member = tarfile.TarInfo(file.relative_to(scratch).as_posix())
                member.size, member.mode = file.stat().st_size, 0o644
                with file.open("rb") as content:
                    archive.addfile(member, content)
        return pinned, path.read_bytes()


def _tops(package: Distribution) -> set[str]:
    """Return the packages of core, of a kit, or of a plugin distribution; empty for other distributions."""
    if canonicalize_name(package.name) == _CORE:
        return {_CORE}
    return {point.module.partition(".")[0] for point in package.entry_points if point.group in (_CORE, _KITS)}


def _copy_source(top: str, target: Path) -> None:
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise PackageNotFoundError(top)
    origin, ignored = Path(spec.origin), shutil.ignore_patterns("__pycache__")
    if spec.submodule_search_locations:
        shutil.copytree(origin.parent, target / top, ignore=ignored, dirs_exist_ok=True)
    else:
        shutil.copy(origin, target)


def _copy_metadata(package: Distribution, target: Path) -> None:
    folder = target / f"{canonicalize_name(package.name).replace('-', '_')}-{package.version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("METADATA", "entry_points.txt"):
        if text := package.read_text(name):
            (folder / name).write_text(text, encoding="utf-8")
