"""Compute MD5 checksums of files concurrently, cached by size, time and inode, and compare them with published
checksums."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mleredux._core.store.files import read_record, write_atomically
from mleredux.errors import DataError
from mleredux.models import Task

CHECKSUMS_FILE = "checksums.json"
"""The file among the prepared data that caches checksums with file times; valid on one machine only."""
_THREADS = 8
_SMALL = 1 << 20
_FEW = 1000


@dataclass(frozen=True)
class Difference:
    """A file that differs from the published one.

    Attributes:
        file: Its path among the prepared files.
        found: Its MD5; None if it is missing.
        published: The published MD5.
    """

    file: str
    found: str | None
    published: str

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.file} is missing"
        return f"{self.file} has MD5 {self.found}; the published MD5 is {self.published}"


class ChecksumMismatch(DataError):
    """Prepared files differ from the published ones; `differences` lists them.

    Attributes:
        differences: Every file that differs.
    """

    def __init__(self, what: str, differences: Iterable[Difference], *, hint: str) -> None:
        self.differences = tuple(differences)
        listed = "; ".join(map(str, self.differences))
        super().__init__(f"The prepared files of {what} differ from the published ones: {listed}.", hint=hint)


def md5(path: Path) -> str:
    """Return the MD5 of a file's content, in hexadecimal."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()


def md5s(paths: Iterable[Path]) -> dict[Path, str]:
    """Compute the MD5 of files concurrently (hashing releases the GIL)."""
    largest_first = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
    if len(largest_first) < 2:
        return {path: md5(path) for path in largest_first}
    threads = min(_THREADS, os.cpu_count() or 1, len(largest_first))
    with ThreadPoolExecutor(threads, thread_name_prefix="md5") as pool:
        return dict(zip(largest_first, pool.map(md5, largest_first), strict=True))


def differences(root: Path, published: Mapping[str, str], memory: Path | None = None) -> list[Difference]:
    """Compare the files of a folder with published checksums.

    Args:
        root: The folder.
        published: MD5 by path relative to it.
        memory: A JSON file that caches checksums, so that unchanged files (same size, modification time and inode) are
            not read again. It need not exist; if it can't be written, nothing is cached.
    """
    content = read_record(memory) if memory else {}
    known = {name: entry for name, entry in content.items() if isinstance(entry, list) and len(entry) == 4}
    now: dict[str, list[Any]] = {}
    for name in published:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            now[name] = _identity(root / name)
    changed = {name: root / name for name, identity in now.items() if known.get(name, [])[:3] != identity}
    current = {name: known[name][3] for name in now if name not in changed}
    hashed = md5s(changed.values())
    current |= {name: hashed[path] for name, path in changed.items()}
    if memory is not None and changed:
        # A file that was written while it was being read is read again next time.
        kept = {name: [*now[name], current[name]] for name in now if now[name] == _identity(root / name)}
        with contextlib.suppress(OSError):
            write_atomically(memory, json.dumps(kept, indent=1) + "\n")
    return [
        Difference(name, current.get(name), wanted) for name, wanted in published.items() if current.get(name) != wanted
    ]


def tree_digest(prepared: Path) -> str:
    """Return a digest of prepared files: of all paths and sizes, and of the content of small files (below 1 MiB).

    In folders of more than 1000 files (images, say), content is omitted: reading it would take longer than preparing it
    by links.
    """
    digest = hashlib.sha256()
    for part in ("public", "private"):
        _digest_folder(prepared / part, part, digest)
    return digest.hexdigest()


def _digest_folder(folder: Path, name: str, digest: hashlib._Hash) -> None:
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    few = len(entries) <= _FEW
    for entry in entries:
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            _digest_folder(Path(entry.path), path, digest)
        elif entry.is_file():
            size = entry.stat().st_size
            digest.update(f"{path}\0{size}\0".encode(errors="surrogateescape"))
            if few and size < _SMALL:
                digest.update(Path(entry.path).read_bytes())


def _identity(path: Path) -> list[Any]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def published_digests(task: Task) -> dict[str, str]:
    """Return the published MD5 of files by their paths relative to the prepared folder."""
    return {f"{part}/{name}": digest for part, files in task.checksums.items() for name, digest in files.items()}
