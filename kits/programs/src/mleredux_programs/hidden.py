"""Paths that must be hidden from a program that is executed on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from mleredux._core.known_files import KnownFiles

_RUN, _RUNS, _MAKING, _PRIVATE = "events.jsonl", "index.sqlite", ".making-", "prepared/private"
_PACKAGES = ("site-packages", "dist-packages")


def hidden_paths(
    roots: Iterable[str], known: KnownFiles, private: Iterable[Path], packages: Iterable[str]
) -> Iterator[str]:
    """Yield folders and files of trees that must be hidden from anyone who sees the trees.

    These are data prepared by mleredux, runs, private folders under other names, known answers, and packages of other
    environments.

    Args:
        roots: The trees; links in them are not followed.
        known: Known answers.
        private: Private folders.
        packages: Package folders to keep visible.
    """
    kept = {os.path.realpath(path) for path in packages}
    secret: dict[int, list[os.stat_result]] = {}
    for folder in private:
        with contextlib.suppress(OSError):
            facts = folder.stat()
            secret.setdefault(facts.st_ino, []).append(facts)
    left = [root for root in roots if not Path(root).is_symlink()]
    tops = frozenset(left)
    while left:
        path = left.pop()
        try:
            with os.scandir(path) as listed:
                entries = {entry.name: entry for entry in listed if not entry.is_symlink()}
        except OSError:
            continue
        if path not in tops and (
            not entries.keys().isdisjoint((_RUN, _RUNS)) or ("prepared" in entries and Path(path, _PRIVATE).is_dir())
        ):
            yield path
            continue
        for entry in entries.values():
            if not entry.is_dir(follow_symlinks=False):
                if known.has(entry.path):
                    yield entry.path
            elif (
                entry.name.startswith(_MAKING)
                or (entry.name in _PACKAGES and not _is_part(os.path.realpath(entry.path), kept))
                or entry.path.endswith(tuple(f"/{folder}" for folder in known.folders))
                or any(os.path.samestat(entry.stat(), facts) for facts in secret.get(entry.inode(), ()))
            ):
                yield entry.path
            else:
                left.append(entry.path)


def _is_part(path: str, kept: Iterable[str]) -> bool:
    return any(f"{one}/".startswith(f"{path}/") or path.startswith(f"{one}/") for one in kept)
