"""Find files that hold a task's answers in a file tree: files of libraries that ship them, and of mleredux itself."""

from __future__ import annotations

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
        self._words = frozenset(name.strip("_").partition("_")[0] for name in (*self._stems, *self._archives))

    def has(self, path: str) -> bool:
        """Return whether a file with this path may hold the answers."""
        name = path.rpartition("/")[2]
        if self._downloads in path:
            return True
        lower = name.lower()
        if not any(word in lower for word in self._words):
            return False
        plain = f"_{re.sub('[^a-z0-9]+', '_', lower)}_"
        if "." in lower.strip(".") and not _OTHER.search(lower) and any(stem in plain for stem in self._stems):
            return True
        return bool(_ARCHIVE.search(lower)) and re.sub(r"^_(python\d?_)?", "", plain).startswith(self._archives)

    def among(self, folder: str, names: str) -> Iterator[str]:
        """Yield the paths of a folder's files that may hold the answers.

        Args:
            folder: The folder's path.
            names: The files' names, separated by `\\0`. Most folders are excluded by these as a whole.
        """
        lower = names.lower()
        if names and (self._downloads in f"{folder}/" or any(word in lower for word in self._words)):
            yield from filter(self.has, (f"{folder}/{name}" for name in names.split("\0")))

    def within(self, paths: Iterable[str]) -> list[str]:
        """Return the files that hold the answers, including all files of data folders without a known file."""
        matches: list[str] = []
        beside: dict[str, list[str]] = {}
        for path in paths:
            folder = path.rpartition("/")[0]
            if self.has(path):
                matches.append(path)
            if folder.endswith(tuple(f"/{each}" for each in self.folders)):
                beside.setdefault(folder, []).append(path)
        for folder, files in beside.items():
            if not any(path.startswith(f"{folder}/") for path in matches):
                matches += files
        return sorted(matches)


def tree_files(root: Path) -> Iterator[str]:
    """Yield the files of a tree, by their paths from its root, which is `/`."""
    for parent, _, names in os.walk(root):
        below = os.path.relpath(parent, root)
        yield from (os.path.normpath(f"/{below}/{name}") for name in names)
