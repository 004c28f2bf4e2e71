"""Find files that hold a task's answers in a file tree: files of libraries that ship them, and of mleredux itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_OTHER = re.compile(
    r"\.([acfho]|cfg|class|conf|cpp|css|desktop|gif|go|hpp|html?|ini|jar|java|jpe?g|js|md|mo|pdf|pl|png|po|pxd|py[cidx]?|rb"
    r"|rs|rst|service|sh|so|svg|tex|toml|ts|ya?ml)(\.\d+)*$"
)
"""Code, settings, documents and images: files with any other suffix may be data."""
_ARCHIVE = re.compile(r"\.(7z|conda|deb|egg|pex|rpm|t[bgx]z2?|tar(\.\w+)?|whl|zip)$")
_DOWNLOADS = "/pip/http"
"""The folder of pip's cache, where archives are named by hashes."""
_DISTRIBUTIONS = {"sklearn": "scikit_learn"}
"""Archive names of libraries whose import name differs."""
_RUN, _RUNS, _MAKING, _PRIVATE = "events.jsonl", "index.sqlite", ".making-", "prepared/private"
_PACKAGES = ("site-packages", "dist-packages")


class KnownFiles:
    """Matches data files with names like those of functions that return answers, and archives of these functions'
    libraries.

    Args:
        functions: Full names of functions that return the answers: `sklearn.datasets.load_digits`.

    Attributes:
        folders: Data folders next to these functions, such as `sklearn/datasets/data`.
    """

    def __init__(self, functions: Iterable[str]) -> None:
        named = [function.rpartition(".") for function in functions]
        self.folders = frozenset(f"{module.replace('.', '/')}/data" for module, _, _ in named)
        stems = [(name.partition("_")[2] or name).lower() for _, _, name in named]
        self._stems = frozenset(f"_{form}_" for stem in stems for form in (stem, stem.replace("_", "")))
        tops = {module.partition(".")[0] for module, _, _ in named}
        self._archives = tuple(f"{name}_" for top in tops for name in {top, _DISTRIBUTIONS.get(top, top)})
        self._downloads = _DOWNLOADS if named else "\0"
        words = [name.strip("_").replace("_", "[^a-z0-9]+") for name in (*self._stems, *self._archives)]
        self._perhaps = re.compile("|".join(words) or "(?!)", re.IGNORECASE)

    def has(self, path: str) -> bool:
        """Return whether a file with this path may hold the answers."""
        name = path.rpartition("/")[2]
        if self._downloads in path:
            return True
        if not self._perhaps.search(name):
            return False
        lower = name.lower()
        plain = f"_{re.sub('[^a-z0-9]+', '_', lower)}_"
        if "." in lower.strip(".") and not _OTHER.search(lower) and any(stem in plain for stem in self._stems):
            return True
        return bool(_ARCHIVE.search(lower)) and re.sub(r"^_(python\d?_)?", "", plain).startswith(self._archives)

    def within(self, paths: Iterable[str]) -> list[str]:
        """Return the files that hold the answers, including all files of data folders without a known file."""
        found: list[str] = []
        beside: dict[str, list[str]] = {}
        for path in paths:
            folder = path.rpartition("/")[0]
            if self.has(path):
                found.append(path)
            if folder.endswith(tuple(f"/{each}" for each in self.folders)):
                beside.setdefault(folder, []).append(path)
        for folder, files in beside.items():
            if not any(path.startswith(f"{folder}/") for path in found):
                found += files
        return sorted(found)


def tree_files(root: Path) -> Iterator[str]:
    """Yield the files of a tree, by their paths from its root, which is `/`."""
    for parent, _, names in os.walk(root):
        below = os.path.relpath(parent, root)
        yield from (os.path.normpath(f"/{below}/{name}") for name in names)


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
