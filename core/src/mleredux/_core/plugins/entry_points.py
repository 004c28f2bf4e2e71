"""The entry points of this environment, cached: reading them takes most of the startup time.

The cache is valid as long as the installation is the same: the distributions on `sys.path`, and time and size of
each one's `entry_points.txt`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mleredux._core.locations import cache_dir

_KEPT_DAYS = 30
_ENDINGS = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """An entry point, and its distribution."""

    name: str
    value: str
    distribution: str | None
    version: str | None


class Installation(NamedTuple):
    """The distributions of this environment.

    Attributes:
        place: Identifies the folders of the distributions.
        state: Identifies the distributions; an installation, an upgrade or a removal changes it.
    """

    place: str
    state: int

    def remembered(self, kind: str) -> Any:
        """The cached value for this installation; None if there is none, or it can't be read."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(self.file(kind).read_bytes())
            if content["state"] == self.state:
                return content["remembered"]
        return None

    def remember(self, kind: str, content: Any) -> None:
        """Cache a JSON-serializable value; does nothing if the cache can't be written."""
        path = self.file(kind)
        with contextlib.suppress(OSError):
            if not path.exists():
                _forget_old(path.parent)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            temporary.write_text(json.dumps({"state": self.state, "remembered": content}), encoding="utf-8")
            temporary.replace(path)

    def file(self, kind: str) -> Path:
        """The path of a cached value."""
        return cache_dir() / "index" / f"{kind}-{self.place}.json"


def installation() -> Installation:
    """The distributions on `sys.path`, without reading them."""
    found = list(_distributions())
    place = zlib.crc32(repr((sys.prefix, sys.version_info[:3], sorted({row[0] for row in found}))).encode())
    return Installation(f"{place:08x}", zlib.crc32(repr(sorted(found)).encode()))


def entry_points(group: str) -> list[EntryPoint]:
    """The entry points of a group, read by `importlib.metadata` or from the cache."""
    here = installation()
    with contextlib.suppress(TypeError):
        return [EntryPoint(*fields) for fields in here.remembered(f"entry-points-{group}")]
    found = list(_look(group))
    here.remember(f"entry-points-{group}", found)
    return found


def _forget_old(folder: Path) -> None:
    """Remove what has not been written for `_KEPT_DAYS`: mostly of environments that are gone; it is made again."""
    before = time.time() - _KEPT_DAYS * 86400
    for path in folder.glob("*-*"):
        if path.stat().st_mtime < before:
            path.unlink(missing_ok=True)


def _look(group: str) -> Iterator[EntryPoint]:
    import importlib_metadata

    for point in importlib_metadata.entry_points(group=group):
        distribution = point.dist
        yield EntryPoint(
            point.name,
            point.value,
            distribution.name if distribution else None,
            distribution.version if distribution else None,
        )


def _distributions() -> Iterator[tuple[str, str, int, int]]:
    """A fingerprint that changes with an installation, an upgrade or a removal."""
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries if entry.name.endswith(_ENDINGS)]
        except NotADirectoryError:
            status = os.stat(folder)  # a zip
            yield folder, "", status.st_mtime_ns, status.st_size
            continue
        except OSError:
            continue
        for name in names:
            try:
                status = os.stat(os.path.join(folder, name, "entry_points.txt"))
                yield folder, name, status.st_mtime_ns, status.st_size
            except OSError:
                yield folder, name, 0, 0
