"""Find copies of a task's held-out files: under any name, as hard links, and in archives."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, cast

from mleredux._core.submissions.files import open_regular
from mleredux._core.submissions.intake import HARD_LINKED, IntakeLimits, hash_regular, walk
from mleredux.models.paths import readable

LIMITS = IntakeLimits(files=20_000, file_bytes=1 << 30, total_bytes=8 << 30)
_FEWEST_BYTES = 64
_DEPTH, _MEMBERS, _DIRECTORY_BYTES, _UNPACKED_BYTES = 3, 100_000, 4 << 20, 1 << 30
_HEAD_BYTES = tarfile.BLOCKSIZE
_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_UNKNOWN = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "RAR", b"\x28\xb5\x2f\xfd": "Zstandard"}
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError)


class _NotSearched(Exception):
    """Carries the reason why an archive could not be searched."""


def private_files(private: Path, sizes: Collection[int]) -> dict[int, dict[str, str]]:
    """Return digests and names of private files of these sizes, by size; tiny and public files prove nothing."""
    by_size: dict[int, dict[str, str]] = {}
    for folder, keep in ((private, True), (private.parent / "public", False)):
        for item in walk(folder, LIMITS):
            if item.reason not in (None, HARD_LINKED) or item.size not in sizes or item.size < _FEWEST_BYTES:
                continue
            with contextlib.suppress(OSError):
                digest = hash_regular(folder / os.fsdecode(item.path))
                if keep:
                    by_size.setdefault(item.size, {})[digest] = readable(item.path)
                else:
                    by_size.get(item.size, {}).pop(digest, None)
    return by_size


class Search:
    """A search for copies of private files in folders.

    Args:
        private: The task's private folder, next to its public one.

    Attributes:
        not_searched: Archives that were not searched, and why.
    """

    def __init__(self, private: Path) -> None:
        self.not_searched: dict[str, str] = {}
        self._sizes = {item.size for item in walk(private, LIMITS)}
        self._of_size = cache(lambda size: private_files(private, {size}).get(size, {}))
        self._members, self._bytes = _MEMBERS, _UNPACKED_BYTES

    def within(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Yield each copy in a folder, and the private file that it equals; members of archives follow `!`."""
        for item in walk(folder, LIMITS):
            if item.reason in (None, HARD_LINKED) and item.size:
                with contextlib.suppress(OSError), open_regular(folder / os.fsdecode(item.path)) as file:
                    yield from self._in_file(file, item.size, readable(item.path), _DEPTH)

    def _in_file(self, file: IO[bytes], size: int, name: str, depth: int) -> Iterator[tuple[str, str]]:
        if size in self._sizes and (same := self._of_size(size)) and (private := same.get(_digest(file))):
            yield name, private
        try:
            for member, known, opened in _members(file):
                self._members -= 1
                if not depth or not self._members:
                    raise _NotSearched(f"more than {_MEMBERS:,} members, or {_DEPTH} levels, of archives")
                with opened() as stream:
                    head = stream.read(_HEAD_BYTES)
                    archive = head.startswith((b"PK\3\4", *_COMPRESSED, *_UNKNOWN)) or _is_tar(head)
                    if archive or known is None or known in self._sizes:
                        with tempfile.TemporaryFile() as copy:
                            length = self._unpack(io.BytesIO(head), copy) + self._unpack(stream, copy)
                            yield from self._in_file(copy, length, name + member, depth - 1)
        except _NotSearched as error:
            self.not_searched[name] = str(error)
        except (*_DAMAGED, OSError, RuntimeError, ValueError):
            self.not_searched[name] = "it is damaged or encrypted"

    def _unpack(self, stream: IO[bytes], copy: IO[bytes]) -> int:
        length = 0
        while block := stream.read(1 << 20):
            length += copy.write(block)
            self._bytes -= len(block)
            if self._bytes < 0:
                raise _NotSearched(f"more than {_UNPACKED_BYTES >> 30} GiB would have to be unpacked")
        return length


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()


def _is_tar(head: bytes) -> bool:
    with contextlib.suppress(tarfile.HeaderError):
        return bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape"))
    return False


def _members(file: IO[bytes]) -> Iterator[tuple[str, int | None, Callable[[], IO[bytes]]]]:
    """Yield `!` and the name of each member of an archive, its size if known, and a function that opens it; nothing for
    other files.

    Raises:
        _NotSearched: The archive can't be read.
    """
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    for mark, kind in _UNKNOWN.items():
        if head.startswith(mark):
            raise _NotSearched(f"it is a {kind} archive")
    for mark, opened in _COMPRESSED.items():
        if head.startswith(mark):
            file.seek(0)
            yield "", None, partial(opened, file)
            return
    if _is_tar(head):
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if member.isreg():
                    opened = partial(cast("Any", tar.extractfile), member)
                    yield f"!{readable(os.fsencode(member.name))}", member.size, opened
                tar.members = []  # type: ignore[attr-defined]
        return
    if (end := zipfile._EndRecData(file)) is not None:  # type: ignore[attr-defined]
        if end[zipfile._ECD_SIZE] > _DIRECTORY_BYTES:  # type: ignore[attr-defined]
            raise _NotSearched("it has too many members")
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    yield f"!{readable(os.fsencode(info.filename))}", info.file_size, partial(archive.open, info)
