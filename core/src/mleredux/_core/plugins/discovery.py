"""Discover plugins through entry points, plugin files and module names, without importing them.

Entry points are cached: reading them takes most of the startup time. The cache is valid as long as the installation is
unchanged: the distributions on `sys.path`, and the time and size of their `entry_points.txt` files.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mleredux._core.locations import cache_place
from mleredux.errors import MlereduxError, NotFound, foreign_code

ENTRY_POINT_GROUP = "mleredux"
PLUGIN_FILE = "mleredux_plugins.py"
BLOCK_VARIABLE = "MLEREDUX_BLOCK_PLUGINS"
LOAD_VARIABLE = "MLEREDUX_PLUGINS"

_KINDS = "tasks techniques agents schemes graders sandboxes formats executors tools commands"
KINDS = tuple(_KINDS.split())
"""The types of objects that plugins register; the hook is `mleredux_register_<kind>`."""
SINGULAR = {kind: kind.removesuffix("es" if kind == "sandboxes" else "s") for kind in KINDS}
"""The type of one object, by the types of several."""


@dataclass(frozen=True)
class Ref:
    """A registered object, such as a task or an agent, that is imported on use.

    Attributes:
        id: The id of the object.
        target: The location of the object: `package.module:attribute`.
        summary: The fields shown by `mleredux list`, JSON-serializable.
    """

    id: str
    target: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """The meaning of references and URLs that begin with `<id>:`; each function receives the whole reference.

    Attributes:
        id: The part before the colon, as `repo` in `repo:https://…@REF`.
        title: A short description.
        find_agent: `find_agent(reference)` returns the pinned `Agent`, or raises `MlereduxError`.
        list_history: `list_history(reference, good, bad)` lists the references of an agent's versions from `good` to
            `bad`, oldest first.
        import_task: `import_task(reference)` imports a task, and returns its id.
        open_store: `open_store(url)` opens an `ObjectStore`, which transfers runs and data between machines.
        open_backend: `open_backend(url)` opens a server as the `Backend` of commands with `--server`.
    """

    id: str
    title: str
    find_agent: Callable[[str], Any] | None = None
    list_history: Callable[[str, str, str], list[str]] | None = None
    import_task: Callable[[str], str] | None = None
    open_store: Callable[[str], Any] | None = None
    open_backend: Callable[[str], Any] | None = None


@dataclass
class Plugin:
    """One plugin, loaded or not.

    Attributes:
        name: The entry point's name (the module's, for plugin files and `-p MODULE`).
        target: The module or object to import, `module` or `module:attribute`; a path for plugin files.
        state: `found`, `loaded`, `blocked` or `failed`.
        index: The objects it registers, by type, if known without importing it.
        hooks: The hooks it implements, if known without importing it.
        withheld: Environment variables that jobs of executors do not get.
        dynamic: Types whose registrations must be queried each time (e.g. a user's imports).
        recorded: Whether its failure is known without importing it.
        errors: Its problems, one sentence each, with the remedy.
        clash: A sentence about other plugins or distributions with the same name, if this plugin is not used because of
            them.
    """

    name: str
    target: str
    distribution: str | None = None
    version: str | None = None
    source: str = "entry point"
    state: str = "found"
    index: dict[str, list[Ref]] | None = None
    hooks: tuple[str, ...] | None = None
    dynamic: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    recorded: bool = False
    object: Any = None
    errors: list[str] = field(default_factory=list)
    clash: str | None = None

    def fail(self, message: str) -> None:
        """Mark the plugin as unusable."""
        self.state = "failed"
        self.errors.append(message)

    def report(self, message: str) -> None:
        """Add a problem, unless it was added before."""
        if message not in self.errors:
            self.errors.append(message)


class Entry(NamedTuple):
    """One registered object, and its plugin."""

    id: str
    kind: str
    plugin: Plugin
    ref: Ref
    object: Any = None


def discover(here: Installation, *, block: tuple[str, ...] = (), load: tuple[str, ...] = ()) -> list[Plugin]:
    """Return all plugins of this environment without importing them.

    Args:
        here: The distributions of this environment.
        block: Names of plugins that are listed as blocked and never imported.
        load: Additional modules or plugin files (`.` is `mleredux_plugins.py` in the current folder).
    """
    blocked = {*block, *names_in(BLOCK_VARIABLE)}
    plugins = [Plugin("core", "mleredux._core.builtin", "mleredux", source="built in")]
    plugins += [Plugin(*point[:4], clash=point.shadowed) for point in entry_points(ENTRY_POINT_GROUP, here)]
    plugins.sort(key=lambda plugin: (plugin.source != "built in", plugin.name, plugin.distribution or ""))
    for plugin in map(_from_request, (*load, *sorted(names_in(LOAD_VARIABLE)))):
        if plugin.target not in {other.target for other in plugins}:  # otherwise it is installed, or requested twice
            plugins.append(plugin)
    seen: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        if plugin.name in blocked and plugin.state == "found":
            plugin.state, plugin.clash = "blocked", None
        if not plugin.clash:
            seen.setdefault(plugin.name, []).append(plugin)
    for same in seen.values():
        if len(same) > 1 and same[0].state != "blocked":
            _refuse_one_name(same)
    for plugin in plugins:
        if plugin.clash:
            plugin.fail(plugin.clash)
    return plugins


def _refuse_one_name(same: list[Plugin]) -> None:
    """Mark plugins with the same name as unusable, except one that is built in, or installed rather than only
    requested.

    The alphabetical order of two distributions must not determine whose code grades results.
    """
    sources = " and ".join(plugin.distribution or plugin.target for plugin in same)
    first, rival = same[0], same[1]
    lost = same if first.source == rival.source == "entry point" else same[1:]
    kept = "none of them is used" if lost is same else f"only that of {first.distribution or first.target} is used"
    for plugin in lost:
        plugin.clash = f"The plugin name {first.name!r} is claimed by {sources}: {kept}; uninstall or rename one."


def names_in(variable: str) -> frozenset[str]:
    """Return the comma-separated names in an environment variable."""
    return frozenset(name.strip() for name in os.environ.get(variable, "").split(",") if name.strip())


def _from_request(request: str) -> Plugin:
    from pathlib import Path

    path = Path(request)
    if request.endswith(".py") or path.is_dir():
        path = path / PLUGIN_FILE if path.is_dir() else path
        plugin = Plugin(path.stem, str(path.resolve()), source="file")
        if not path.is_file():
            plugin.fail(
                f"Plugin file {path} does not exist; specify a .py file or a folder that contains {PLUGIN_FILE}."
            )
        return plugin
    return Plugin(request, request, source="option")


_PROVIDED = {
    "diagnose_gpus": ("checks GPUs in sandboxes", "mleredux-containers"),
    "experiment": ("executes experiments", "mleredux-experiments"),
    "find_environment": ("creates environments of agents", "mleredux-agent-repo"),
    "grade_jsonl": ("grades lists of submissions", "mleredux-grading"),
    "rollout": ("reads rollouts", "mleredux-rollout"),
    "smoke_run": ("executes smoke runs", "mleredux-agent-repo"),
}
"""What the entry points of the groups `mleredux.api` and `mleredux.kits` do, and which packages provide them."""
_KEPT_DAYS = 30
_ENDINGS = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """An entry point and its distribution.

    Attributes:
        shadowed: A sentence about another distribution of the same name, if that one is used instead.
    """

    name: str
    value: str
    distribution: str | None
    version: str | None
    shadowed: str | None = None


class Installation(NamedTuple):
    """The distributions of this environment.

    Attributes:
        place: Identifies the folders of the distributions.
        state: Identifies the distributions; an installation, an upgrade or a removal changes it.
    """

    place: str
    state: int

    def remembered(self, kind: str) -> Any:
        """Return the cached value for this installation; None if there is none or it can't be read."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError), open(self.file(kind), "rb") as file:
            content = json.load(file)
            if content["state"] == self.state:
                return content["remembered"]
        return None

    def remember(self, kind: str, content: Any) -> None:
        """Cache a JSON-serializable value; do nothing if the cache can't be written."""
        path = self.file(kind)
        folder, name = os.path.split(path)
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if not os.path.exists(path):
                _forget_old(folder)
            temporary = f"{folder}/.{name}.{os.getpid()}"
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps({"state": self.state, "remembered": content}))
            os.replace(temporary, path)

    def file(self, kind: str) -> str:
        """Return the path of a cached value."""
        return f"{cache_place()}/index/{kind}-{self.place}.json"


def installation() -> Installation:
    """Return the distributions on `sys.path`, without reading them."""
    distributions = list(_distributions())
    place = zlib.crc32(repr((sys.prefix, sys.version_info[:3], sorted({row[0] for row in distributions}))).encode())
    return Installation(f"{place:08x}", zlib.crc32(repr(sorted(distributions)).encode()))


def entry_points(group: str, here: Installation | None = None) -> list[EntryPoint]:
    """Return the entry points of a group, read by `importlib.metadata` or from the cache.

    Args:
        group: The group's name.
        here: The distributions of this environment; None: they are listed.
    """
    here = here or installation()
    with contextlib.suppress(TypeError):
        return [EntryPoint(*fields) for fields in here.remembered(f"entry-points-{group}")]
    points = list(dict.fromkeys(_read_entry_points(group)))  # a folder may be on the path twice, as a link
    here.remember(f"entry-points-{group}", points)
    return points


def provided(name: str, group: str = "mleredux.api") -> Any:
    """Return an object that a package which core does not need provides: an entry point of a group.

    Raises:
        NotFound: No installed package provides it, or several do.
    """
    import pkgutil

    points = [point for point in entry_points(group) if point.name == name and not point.shadowed]
    if len(points) == 1:
        return pkgutil.resolve_name(points[0].value)
    what, package = _PROVIDED[name]
    rivals = ", ".join(str(point.distribution) for point in points)
    hint = f"Uninstall all but one of {rivals}." if rivals else f"Install one: `pip install {package}`."
    raise NotFound(f"{'More than one' if rivals else 'No'} installed package {what}.", hint=hint)


def _forget_old(folder: str) -> None:
    """Remove files not written for `_KEPT_DAYS`, mostly of deleted environments; they are recreated if needed."""
    before = time.time() - _KEPT_DAYS * 86400
    for entry in list(os.scandir(folder)):
        if "-" in entry.name and entry.stat().st_mtime < before:
            os.unlink(entry.path)


def _read_entry_points(group: str) -> Iterator[EntryPoint]:
    import importlib_metadata

    for found in importlib_metadata.distributions():
        message = f"The metadata in {getattr(found, '_path', found)} can't be read"
        with foreign_code(MlereduxError, message, "Reinstall or remove this package."):
            points = found.entry_points.select(group=group)
            rivals = [found, importlib_metadata.distribution(found.name)] if points else []
            places = [f"{each.name} {each.version} in {os.path.realpath(str(each.locate_file('')))}" for each in rivals]
        for point in points:
            shadowed = "The distribution {} is shadowed by {}, which is used instead; uninstall one.".format(*places)
            shadow = shadowed if len(set(places)) > 1 else None
            yield EntryPoint(point.name, point.value, found.name, found.version, shadow)


def _distributions() -> Iterator[tuple[str, str, int, int]]:
    """Yield a fingerprint that changes with an installation, an upgrade or a removal."""
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries if entry.name.endswith(_ENDINGS)]
        except OSError:
            yield folder, *signature(folder)  # a zip, or nothing
            continue
        for name in names:
            yield folder, *signature(os.path.join(folder, name, "entry_points.txt"))


def signature(path: str) -> tuple[str, int, int]:
    """Return a path with the time, in nanoseconds, and the size of its file; zeros if there is none."""
    try:
        status = os.stat(path)
        return path, status.st_mtime_ns, status.st_size
    except OSError:
        return path, 0, 0
