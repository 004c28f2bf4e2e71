"""Folders as trees of content-addressed pieces, so that only changes are transferred."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from mleredux.errors import StoreError
from mleredux.plugin.files import open_regular, remove_tree

PIECE = 8 << 20
"""Maximum size of a piece in bytes."""
_MOST_SMALL = 32
"""Number of small pieces at the end of a growing file before they are joined."""
_DEEPEST = 100
_FRESH_NS = 100_000_000
"""A file that changed less than this time before it was read may change again without a new timestamp."""
_HOLE = ""

Pieces = tuple[tuple[str, int], ...]
"""Names and sizes; the name of a hole is empty."""


@dataclass(frozen=True)
class File:
    """A regular file: permissions, size in bytes, time of the last change in ns, and content."""

    mode: int
    size: int
    time: int
    pieces: Pieces


@dataclass
class Tree:
    """The contents of a folder by path: regular files, folders with permissions, and links with targets."""

    files: dict[str, File] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return the names of all pieces."""
        return {name for file in self.files.values() for name, _ in file.pieces if name != _HOLE}

    def without(self, left_out: Callable[[str, int], bool]) -> Tree:
        """Return the tree without some files, selected by path and size."""
        files = {path: file for path, file in self.files.items() if not left_out(path, file.size)}
        return Tree(files, self.folders, self.links)

    @property
    def size(self) -> int:
        """The total size of all files, in bytes."""
        return sum(file.size for file in self.files.values())

    def dump(self) -> bytes:
        """Serialize the tree to bytes; equal trees give equal bytes."""
        files = {path: [file.mode, file.size, file.time, file.pieces] for path, file in sorted(self.files.items())}
        content = [files, dict(sorted(self.folders.items())), dict(sorted(self.links.items()))]
        return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)

    @classmethod
    def load(cls, content: bytes) -> Tree:
        """Read the output of `dump`.

        Raises:
            StoreError: The bytes are not a tree, or have paths that point outside it.
        """
        try:
            files, folders, links = json.loads(zlib.decompress(content))
            tree = cls(
                {
                    path: File(int(mode), int(size), int(changed), tuple((str(a), int(b)) for a, b in pieces))
                    for path, (mode, size, changed, pieces) in files.items()
                },
                dict(folders),
                dict(links),
            )
        except (ValueError, TypeError, AttributeError, zlib.error) as error:
            raise StoreError(f"A file tree is damaged ({type(error).__name__}).") from error
        for path in itertools.chain(tree.files, tree.folders, tree.links):
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts or "\0" in path:
                raise StoreError(f"A file tree has the invalid path {path!r}.")
        return tree


class Scanner:
    """Scans a folder repeatedly, rereading only changed files.

    The folder may be hostile: no link is followed, and only regular files are read.

    Args:
        root: The folder.
        skip: Returns whether a path under the folder is omitted.
        grows: Returns whether a file is append-only.
        times: Whether times are part of the tree; otherwise they are 0.
    """

    def __init__(
        self,
        root: Path,
        *,
        skip: Callable[[str], bool],
        grows: Callable[[str], bool] = lambda _path: False,
        times: bool = True,
    ) -> None:
        self._root, self._skip, self._grows, self._times = root, skip, grows, times
        self._seen: dict[str, tuple[tuple[int, ...], File]] = {}

    def forget(self) -> None:
        """Read everything at the next scan."""
        self._seen = {}

    def scan(self, put: Callable[[bytes], str], most: Mapping[str, int] | None = None) -> Tree:
        """Return the tree.

        Args:
            put: Stores a piece and returns its name.
            most: Maximum number of bytes to read, for some files.
        """
        tree, seen = Tree(), {}
        for above, folders, names, descriptor in os.fwalk(self._root, follow_symlinks=False):
            base = Path(above).relative_to(self._root)
            kept = []
            for name in (*folders, *names):
                path = (base / name).as_posix()
                if self._skip(path):
                    continue
                with contextlib.suppress(OSError):  # it was deleted, or is not readable
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        tree.folders[path] = stat.S_IMODE(status.st_mode)
                        kept.append(name)
                    elif stat.S_ISLNK(status.st_mode):
                        tree.links[path] = os.readlink(name, dir_fd=descriptor)
                    elif stat.S_ISREG(status.st_mode):
                        limit = (most or {}).get(path)
                        seen[path] = self._file(path, name, descriptor, status, put, limit)
                        tree.files[path] = seen[path][1]
            folders[:] = kept if len(base.parts) < _DEEPEST else []
        self._seen = seen
        return tree

    def _file(
        self,
        path: str,
        name: str,
        folder: int,
        status: os.stat_result,
        put: Callable[[bytes], str],
        most: int | None,
    ) -> tuple[tuple[int, ...], File]:
        size = status.st_size if most is None else min(most, status.st_size)
        identity: tuple[int, ...] = (status.st_ino, size, status.st_mtime_ns, status.st_ctime_ns)
        before = self._seen.get(path)
        if before is not None and before[0] == identity:
            return before
        kept: Pieces = ()
        if before is not None and self._grows(path) and before[0][0] == status.st_ino and before[1].size < size:
            kept = _without_small(before[1].pieces)
        with open_regular(name, folder) as file:
            changed_at = os.fstat(file.fileno()).st_ctime_ns
            pieces = (*kept, *_pieces(file.fileno(), sum(length for _, length in kept), size, put))
            if changed_at > time.time_ns() - _FRESH_NS:
                identity = (status.st_ino,)
        held = sum(length for _, length in pieces)
        changed = status.st_mtime_ns if self._times else 0
        return identity, File(stat.S_IMODE(status.st_mode), held, changed, pieces)


def _without_small(pieces: Pieces) -> Pieces:
    """Return the pieces without the many small ones at the end."""
    small = sum(1 for _ in itertools.takewhile(lambda piece: piece[1] < PIECE, reversed(pieces)))
    return pieces[: len(pieces) - small] if small > _MOST_SMALL else pieces


def _pieces(descriptor: int, at: int, size: int, put: Callable[[bytes], str]) -> Iterator[tuple[str, int]]:
    while at < size:
        wanted = min(PIECE, size - at)
        try:
            hole = os.lseek(descriptor, at, os.SEEK_DATA) >= at + wanted
        except OSError:  # only a hole is left
            hole = at + wanted <= os.fstat(descriptor).st_size
        data = b"" if hole else os.pread(descriptor, wanted, at)
        if not hole and not data:
            return  # it was truncated meanwhile
        length = wanted if hole else len(data)
        yield (_HOLE if hole else put(data), length)
        at += length


def restore(
    root: Path,
    tree: Tree,
    get: Callable[[str], bytes],
    *,
    skip: Callable[[str], bool],
    grows: Callable[[str], bool] = lambda _path: False,
    known: Tree | None = None,
    last: str = "",
) -> None:
    """Make a folder match a tree; files of the same size and time are not read.

    No one else may write there, except to skipped files.

    Args:
        root: The folder.
        tree: The tree.
        get: Returns a piece.
        skip: Returns whether a path is left unchanged.
        grows: Returns whether a file is appended to in place; others are replaced atomically.
        known: The tree that the folder matched before.
        last: The file to write after all others.

    Raises:
        OSError: The folder can't be written.
    """
    root.mkdir(parents=True, exist_ok=True)
    _remove_others(root, tree, skip)
    for path in sorted(tree.folders):
        (root / path).mkdir(exist_ok=True)
        (root / path).chmod(tree.folders[path] & 0o777 | 0o700)
    for path, file in sorted(tree.files.items(), key=lambda item: item[0] == last):
        before = known.files.get(path) if known is not None else None
        _write(root / path, file, get, before if before is not None and grows(path) else None)
    for path, target in tree.links.items():
        place = root / path
        if not place.is_symlink() or os.readlink(place) != target:  # noqa: PTH115 - as it was written
            place.unlink(missing_ok=True)
            place.symlink_to(target)


def _remove_others(root: Path, tree: Tree, skip: Callable[[str], bool]) -> None:
    """Remove entries that are not in a tree or have another type."""
    for above, folders, names in os.walk(root):
        base = Path(above).relative_to(root)
        for name in (*folders, *names):
            path, place = (base / name).as_posix(), Path(above) / name
            if skip(path):
                continue
            if place.is_symlink():
                fits = path in tree.links
            elif place.is_dir():
                fits = path in tree.folders
            else:
                fits = path in tree.files
            if not fits and (place.is_symlink() or not place.is_dir()):
                place.unlink()
            elif not fits:
                remove_tree(place)
        folders[:] = [name for name in folders if (base / name).as_posix() in tree.folders]


def _write(place: Path, file: File, get: Callable[[str], bytes], before: File | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = place.lstat()
        now = (status.st_size, status.st_mtime_ns)
        if now == (file.size, file.time):
            return
        if before is not None and now == (before.size, before.time):
            pairs = zip(before.pieces, file.pieces, strict=False)
            common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            with place.open("r+b") as there:
                _fill(there.fileno(), file, common, get)
            os.utime(place, ns=(file.time, file.time))
            return
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as there:
            _fill(there.fileno(), file, 0, get)
            os.fchmod(there.fileno(), file.mode & 0o777 | 0o600)
        os.utime(temporary, ns=(file.time, file.time))
        Path(temporary).replace(place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _fill(descriptor: int, file: File, common: int, get: Callable[[str], bytes]) -> None:
    """Write all pieces except the first ones, which are present."""
    at = sum(length for _, length in file.pieces[:common])
    for name, length in file.pieces[common:]:
        data = memoryview(get(name) if name != _HOLE else b"")
        if name != _HOLE and len(data) != length:
            raise StoreError(f"Piece {name} has {len(data)} bytes, not {length}.")
        start = at
        while data:
            wrote = os.pwrite(descriptor, data, start)
            start, data = start + wrote, data[wrote:]
        at += length
    os.ftruncate(descriptor, at)
