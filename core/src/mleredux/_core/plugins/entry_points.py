"""The entry points of this environment, remembered: importing `importlib.metadata` is most of a start-up's cost.

What is remembered holds as long as `sys.path`, and name, time and size of every `entry_points.txt` on it, are the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from mleredux._core.locations import cache_dir

_ENDINGS = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """An entry point, and who declares it."""

    name: str
    value: str
    distribution: str | None
    version: str | None


def entry_points(group: str) -> list[EntryPoint]:
    """The entry points of a group, by `importlib.metadata`, or as remembered from its last look."""
    state = list(_state())
    path = cache_dir() / f"entry-points-{group}-{zlib.crc32(repr((sys.prefix, sys.path)).encode()):08x}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        remembered = json.loads(path.read_bytes())
        if remembered["state"] == state:
            return [EntryPoint(*fields) for fields in remembered["points"]]
    found = list(_look(group))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"state": state, "points": found}), encoding="utf-8")
        temporary.replace(path)
    return found


def _look(group: str) -> Iterator[EntryPoint]:
    from importlib import metadata

    for point in metadata.entry_points(group=group):
        distribution = point.dist
        yield EntryPoint(
            point.name,
            point.value,
            distribution.name if distribution else None,
            distribution.version if distribution else None,
        )


def _state() -> Iterator[list[Any]]:
    """What an installation, an upgrade or a removal changes."""
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(_ENDINGS))
        except NotADirectoryError:
            status = os.stat(folder)  # a zip
            yield [folder, status.st_mtime_ns, status.st_size]
            continue
        except OSError:
            continue
        for name in names:
            with contextlib.suppress(OSError):
                status = os.stat(os.path.join(folder, name, "entry_points.txt"))
                yield [folder, name, status.st_mtime_ns, status.st_size]
