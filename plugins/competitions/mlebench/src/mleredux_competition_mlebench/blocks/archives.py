"""Archives as trees: zip, 7z and tar, each read once and extracted directly to the target."""

from __future__ import annotations

import io
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from mleredux.errors import DataError, one_line

from mleredux_competition_mlebench.blocks.extras import require
from mleredux_competition_mlebench.blocks.placement import make_folders
from mleredux_competition_mlebench.blocks.trees import Folder, Stream, Tree, spooled

SUFFIXES = (".zip", ".7z", ".tar.gz", ".tgz", ".tar")
AGAIN = "prepare it with --force, which downloads it again"
_CHUNK = 1 << 20
DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, NotImplementedError,
)  # fmt: skip
"""Exceptions raised by reading a truncated or damaged archive."""


def open_tree(raw: Path, name: str, inside: str = "") -> Tree:
    """Open a raw folder or archive as a tree.

    Args:
        name: A folder, an archive, or an archive's name without its suffix. If the archive is already unpacked (a
            folder is named like its stem or `inside`), that folder is used.
        inside: The folder inside the tree to use as its root.

    Raises:
        DataError: The folder or archive does not exist or can't be read.
    """
    stem = next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)
    for candidate in dict.fromkeys([name, *(stem + suffix for suffix in SUFFIXES)]):
        path = raw / candidate
        if path.is_file() and path.name.endswith(SUFFIXES):
            return _open_archive(path, candidate).inside(inside)
        if path.is_dir():
            return Folder(path, candidate).inside(inside)
    top = inside.partition("/")[0]
    for folder in dict.fromkeys([inside, stem] if top else [stem]):
        if (raw / folder).is_dir():
            return Folder(raw / folder, folder)
    raise DataError(f"The raw data has no {name}.", hint=f"Searched {raw}; {AGAIN}.")


def _open_archive(path: Path, where: str) -> Tree:
    if where.endswith(".zip"):
        return Zip(path, where)
    return SevenZip(path, where) if where.endswith(".7z") else Tar(path, where)


def _clean(name: str, where: str) -> str:
    name = name.removeprefix("./").rstrip("/")
    if name.startswith("/") or ".." in name.split("/"):
        raise DataError(f"{where} contains the path {name!r}, which points outside the archive.", hint="Do not use it.")
    return name


def _write_new(content: IO[bytes], target: str) -> None:
    with open(target, "xb") as file:  # noqa: PTH123
        shutil.copyfileobj(content, file, _CHUNK)


class _Archive(Tree):
    def __init__(self, path: Path, where: str) -> None:
        super().__init__(where)
        self.path = path

    def damaged(self, error: BaseException) -> DataError:
        """Return the error for an archive that can't be read."""
        return DataError(
            f"{self.where} is truncated or damaged ({one_line(error)}).",
            hint=f"{AGAIN.capitalize()}.",
        )

    def extract(self, pairs: Sequence[tuple[str, str]]) -> None:
        if not pairs:
            return
        make_folders(target for _, target in pairs)
        # members arrive in stored order, mostly class by class; a second copy puts them in the requested order
        with tempfile.TemporaryDirectory(dir=Path(pairs[0][1]).parent, prefix=".part-") as folder:
            paths = {name: f"{folder}/{number}" for number, name in enumerate(dict(pairs))}
            self._unpack(paths)
            for name, target in pairs:
                with open(paths[name], "rb") as content:  # noqa: PTH123
                    _write_new(content, target)

    def _unpack(self, paths: dict[str, str]) -> None:
        """Write members to paths in an existing folder, in any order."""
        for name, content in self.stream(paths):
            _write_new(content, paths[name])


class Zip(_Archive):
    """A zip archive."""

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (*DAMAGE, OSError) as error:
            raise self.damaged(error) from error

    def _list(self) -> tuple[dict[str, int], list[str]]:
        infos = [info for info in self._zip.infolist() if not info.filename.startswith("__MACOSX/")]
        files = {_clean(info.filename, self.where): info.file_size for info in infos if not info.is_dir()}
        return files, [_clean(info.filename, self.where) for info in infos if info.is_dir()]

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        return {info.filename.removeprefix("./"): info for info in self._zip.infolist()}

    def extract(self, pairs: Sequence[tuple[str, str]]) -> None:
        make_folders(target for _, target in pairs)
        for name, target in pairs:
            for _, content in self.stream([name]):
                _write_new(content, target)

    def stream(self, wanted: Collection[str]) -> Stream:
        try:
            for name in wanted:
                with self._zip.open(self._members[name]) as content:
                    yield name, content
        except DAMAGE as error:
            raise self.damaged(error) from error


class Tar(_Archive):
    """A tar archive, compressed or not."""

    def _list(self) -> tuple[dict[str, int], list[str]]:
        try:
            with tarfile.open(self.path) as tar:
                infos = tar.getmembers()
        except (*DAMAGE, OSError) as error:
            raise self.damaged(error) from error
        files = {_clean(info.name, self.where): info.size for info in infos if info.isfile()}
        return files, [_clean(info.name, self.where) for info in infos if info.isdir()]

    @property
    def sequential(self) -> bool:
        return True

    def stream(self, wanted: Collection[str]) -> Stream:
        try:
            with tarfile.open(self.path) as tar:
                for info in tar:
                    name = info.name.removeprefix("./")
                    content = tar.extractfile(info) if name in wanted and info.isfile() else None
                    if content is not None:
                        yield name, content
        except DAMAGE as error:
            raise self.damaged(error) from error


class SevenZip(_Archive):
    """A 7z archive; reading it requires the extra `7z`."""

    def _open(self) -> Any:
        py7zr = require("py7zr", "7z")
        try:
            return py7zr.SevenZipFile(self.path)
        except (py7zr.exceptions.ArchiveError, *DAMAGE, OSError) as error:
            raise self.damaged(error) from error

    def _list(self) -> tuple[dict[str, int], list[str]]:
        with self._open() as archive:
            entries = archive.list()
        files = {_clean(entry.filename, self.where): entry.uncompressed for entry in entries if not entry.is_directory}
        return files, [_clean(entry.filename, self.where) for entry in entries if entry.is_directory]

    def _unpack(self, paths: dict[str, str]) -> None:
        """Extract in a single pass: solid blocks are decoded once, and every member is written to its target."""
        py7zr = require("py7zr", "7z")
        try:
            with self._open() as archive:
                archive.extract(targets=list(paths), factory=_Factory(paths))
        except (py7zr.exceptions.ArchiveError, *DAMAGE) as error:
            raise self.damaged(error) from error

    def stream(self, wanted: Collection[str]) -> Stream:
        return spooled(self._unpack, wanted)


class _Writer(io.FileIO):
    """The file that py7zr writes a member to; it reports its size."""

    def size(self) -> int:
        return self.tell()


class _Factory:
    """py7zr's factory that chooses a member's target."""

    def __init__(self, targets: dict[str, str]) -> None:
        self._targets = targets

    def create(self, filename: str) -> _Writer:
        return _Writer(self._targets[filename], "x+")
