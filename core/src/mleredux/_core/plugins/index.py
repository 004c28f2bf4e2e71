"""An index of what each installed plugin registers and implements, so that listing does not import plugins.

New or changed plugins are imported in a separate process; the result is stored in the user's cache as long as the
installation, mleredux and the plugin's files do not change. If the cache can't be written, each process repeats this.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from mleredux._core.plugins.discovery import KINDS, Installation, Plugin, Ref, installation, signature

_LONGEST_S = 300.0
_DESCRIBE = (
    "import json, sys; request = json.load(open(sys.argv[1])); sys.path[:] = request['path']; "
    "from mleredux._core.plugins.description import main; main(request)"
)
_DESCRIBING = "MLEREDUX_DESCRIBING_PLUGINS"
_process: dict[Installation, dict[str, Any]] = {}
"""The records known to this process, for further catalogues."""


def read_index(plugins: Iterable[Plugin], here: Installation) -> None:
    """Fill in what plugins register and implement, and their failures; requested files and modules are skipped."""
    if _DESCRIBING in os.environ:  # a plugin that is being indexed may open a catalogue itself
        return
    indexed = [plugin for plugin in plugins if plugin.state == "found" and plugin.source not in ("file", "option")]
    known, stale = _sorted_out(here, indexed)
    if stale:
        with _alone(here):
            known, stale = _sorted_out(here, indexed)  # another process may have updated it in the meantime
            if stale:
                known = {"core": known["core"], "plugins": {**known["plugins"], **_describe(stale)}}
                here.remember("plugins", known)
    _process[here] = known
    for plugin in indexed:
        if plugin.name in known["plugins"]:
            _apply(plugin, known["plugins"][plugin.name])


def forget_index() -> None:
    """Discard the index; it is rebuilt on next use."""
    here = installation()
    _process.pop(here, None)
    with contextlib.suppress(OSError):
        os.unlink(here.file("plugins"))


def watched(package: str, distribution: str | None) -> list[str]:
    """Return the paths that change with a package: pip's list of its files, or its folders or file."""
    import importlib.util

    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    places = list(spec.submodule_search_locations or ([spec.origin] if spec.origin else []))
    for folder in {os.path.dirname(place) for place in places}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                name, _, ending = entry.name.rpartition(".")
                if ending == "dist-info" and _same_distribution(name.partition("-")[0], distribution):
                    record = os.path.join(entry.path, "RECORD")
                    return [record] if os.path.exists(record) else places
    return places


def _same_distribution(name: str, other: str | None) -> bool:
    """Return whether two names denote the same distribution according to PEP 503."""
    import re

    return re.sub(r"[-_.]+", "-", name).lower() == re.sub(r"[-_.]+", "-", other or "").lower()


def stamp(paths: Iterable[str]) -> int:
    """Return a fingerprint of all files at or under the paths, except compiled ones."""
    seen: list[tuple[str, int, int]] = []
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir():
                        if entry.name != "__pycache__":
                            waiting.append(entry.path)
                    else:
                        status = entry.stat()
                        seen.append((entry.path, status.st_mtime_ns, status.st_size))
        except OSError:  # a file, or nothing
            seen.append(signature(path))
    return zlib.crc32(repr(sorted(seen)).encode())


def _sorted_out(here: Installation, plugins: list[Plugin]) -> tuple[dict[str, Any], list[Plugin]]:
    """Return the valid records, and the plugins without one."""
    known = _process.get(here) or here.remembered("plugins")
    with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError):
        paths, was = known["core"]
        if was == stamp(paths):
            return known, [plugin for plugin in plugins if not _holds(known["plugins"].get(plugin.name), plugin)]
    paths = watched("mleredux", "mleredux")
    return {"core": [paths, stamp(paths)], "plugins": {}}, plugins


def _holds(record: Any, plugin: Plugin) -> bool:
    """Return whether a plugin's record is valid; the core's files are known to be unchanged."""
    of = [plugin.target, plugin.distribution, plugin.version]
    same = record is not None and record["of"] == of
    return same and (plugin.source == "built in" or record["stamp"] == stamp(record["watched"]))


def _describe(plugins: list[Plugin]) -> dict[str, Any]:
    """Build records of plugins in another process; a plugin that ends it does not affect the others."""
    import subprocess
    import tempfile
    from pathlib import Path

    records: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="mleredux-") as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.jsonl")
        while waiting := [plugin for plugin in plugins if plugin.name not in records]:
            fields = [[plugin.name, plugin.target, plugin.distribution, plugin.version] for plugin in waiting]
            path = [os.path.abspath(place) for place in sys.path]
            request.write_text(json.dumps({"path": path, "plugins": fields, "answer": str(answer)}))
            answer.unlink(missing_ok=True)
            try:
                ended = subprocess.run(
                    [sys.executable, "-c", _DESCRIBE, str(request)],
                    env={**os.environ, _DESCRIBING: "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=_LONGEST_S,
                    text=True,
                    errors="replace",
                )
                how = f"exit code {ended.returncode}: {' '.join(ended.stderr.split())[-200:]}"
            except subprocess.TimeoutExpired:
                how = f"it took longer than {_LONGEST_S:.0f} s"
            except OSError:  # Python can't be started: plugins are imported on use
                return records
            if not answer.is_file():
                return records
            for line in answer.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                records[record["name"]] = record
            for record in records.values():
                if "failed" not in record:  # the last plugin that was started
                    record["failed"] = True
                    record["errors"] = [
                        f"Plugin {record['name']!r} ends the process that imports it ({how}); fix or uninstall "
                        f"{record['of'][1] or 'it'}, or block it with --block {record['name']}."
                    ]
    return records


def _apply(plugin: Plugin, record: dict[str, Any]) -> None:
    try:
        index = {kind: [Ref(**item) for item in record.get(kind, ())] for kind in KINDS}
        plugin.errors += record["errors"]
        if record["failed"]:
            plugin.state, plugin.recorded = "failed", True
            return
        plugin.withheld = tuple(record["withheld"])
        plugin.index, plugin.hooks, plugin.dynamic = index, tuple(record["hooks"]), tuple(record["dynamic"])
    except (KeyError, TypeError):
        plugin.errors.clear()  # a damaged file: the plugin is imported on use


@contextlib.contextmanager
def _alone(here: Installation) -> Iterator[None]:
    """Lock the index, so that one process at a time updates it; no lock if the cache can't be written."""
    from pathlib import Path

    from mleredux._core.store.files import FileLock

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path = Path(here.file("plugins"))
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(path.with_suffix(".lock")))
        yield
