"""Contents of files: tables, JSON, text, arrays, archives. A content knows how to write itself; a workspace knows
when.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mleredux.plugin.task import neutral_order

from mleredux_competition_mlebench.blocks.extras import require
from mleredux_competition_mlebench.blocks.trees import Files, Tree

_CHUNK = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # fixed times: the same raw data gives the same archive
_COMPRESSED = (".jpg", ".jpeg", ".png", ".zip", ".gz", ".7z", ".mp4")


class Content(ABC):
    """The bytes of one file."""

    @abstractmethod
    def stream(self, file: IO[bytes]) -> None:
        """Write the bytes to an open file."""

    def write(self, path: Path) -> None:
        """Write the bytes to a path whose folder exists."""
        with path.open("wb") as file:
            self.stream(file)


@dataclass(frozen=True)
class Csv(Content):
    """A table as written by pandas: no index, shortest exact floats, quotes only if needed, `\\n` line ends.

    Attributes:
        options: Additional options of `DataFrame.to_csv`.
    """

    table: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def stream(self, file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        self.table.to_csv(text, **{"index": False, "lineterminator": "\n", **self.options})
        text.flush()
        text.detach()


@dataclass(frozen=True)
class Json(Content):
    """A document as written by Python's json module, without a final newline.

    Attributes:
        options: Additional options of `json.dumps`.
    """

    document: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def stream(self, file: IO[bytes]) -> None:
        file.write(json.dumps(self.document, **self.options).encode("utf-8"))


@dataclass(frozen=True)
class JsonLines(Content):
    """A table as written by `DataFrame.to_json`, one record per line."""

    table: Any

    def stream(self, file: IO[bytes]) -> None:
        file.write(self.table.to_json(orient="records", lines=True).encode("utf-8"))


@dataclass(frozen=True)
class Text(Content):
    """Text in UTF-8."""

    text: str

    def stream(self, file: IO[bytes]) -> None:
        file.write(self.text.encode("utf-8"))


@dataclass(frozen=True)
class Array(Content):
    """A NumPy array as an npy file."""

    array: Any

    def stream(self, file: IO[bytes]) -> None:
        import numpy as np

        np.save(file, self.array)


@dataclass(frozen=True)
class SameBytes(Content):
    """An unchanged file of a tree; linked if the file system allows it."""

    tree: Tree
    name: str

    def stream(self, file: IO[bytes]) -> None:
        file.write(self.tree.read(self.name))

    def write(self, path: Path) -> None:
        self.tree.extract([(self.name, str(path))])


@dataclass(frozen=True)
class Written(Content):
    """The output of a function that writes to an open file: for streams larger than memory."""

    writer: Callable[[IO[bytes]], None]

    def stream(self, file: IO[bytes]) -> None:
        self.writer(file)


Members = Files | Mapping[str, Content]


def _entries(members: Members) -> Iterator[tuple[str, Content | IO[bytes]]]:
    return members.stream() if isinstance(members, Files) else iter(members.items())


@dataclass(frozen=True)
class Zip(Content):
    """A zip archive of selected files, or of contents by member name.

    Already compressed members (JPEG, PNG, archives) are stored, all others deflated. The published preparation deflates
    everything; readers see the same names and bytes either way.

    Attributes:
        folder: Prefix of every name; it gets its own entry.
        stored: Whether nothing is compressed.
    """

    members: Members
    folder: str = ""
    stored: bool = False

    def stream(self, file: IO[bytes]) -> None:
        prefix = f"{self.folder}/" if self.folder else ""
        with zipfile.ZipFile(file, "w") as archive:
            if prefix:
                archive.writestr(zipfile.ZipInfo(prefix, _EPOCH), b"")
            for name, content in _entries(self.members):
                info = zipfile.ZipInfo(prefix + name, _EPOCH)
                packed = self.stored or (isinstance(self.members, Files) and name.lower().endswith(_COMPRESSED))
                info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=True) as member:
                    _pour(content, member)


def write_tars(archives: Mapping[IO[bytes], Files]) -> None:
    """Write uncompressed tar archives of selected files of one tree, which is read once, in stored order.

    Members are in neutral order: each is written directly to its final position.

    Args:
        archives: Open seekable files, each with its contents.
    """
    tree = next(iter(archives.values())).tree
    sizes = tree.sizes()
    places: dict[str, list[tuple[IO[bytes], int]]] = {}
    for file, files in archives.items():
        sources = {member.name: member.source for member in files.members}
        end = 0
        for name in neutral_order(sources):
            info = tarfile.TarInfo(name)
            info.size = sizes[sources[name]]
            file.seek(end)
            file.write(info.tobuf())
            places.setdefault(sources[name], []).append((file, file.tell()))
            end = file.tell() + -(-info.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        file.truncate(-(-(end + 2 * tarfile.BLOCKSIZE) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE)
    for source, content in tree.stream(places):
        data = content.read()
        for file, place in places[source]:
            file.seek(place)
            file.write(data)


@dataclass(frozen=True)
class SevenZip(Content):
    """A 7z archive of contents by member name; writing requires the extra `7z`.

    Attributes:
        empty_folders: Names of folder entries without files.
    """

    members: Mapping[str, Content] = field(default_factory=dict)
    empty_folders: tuple[str, ...] = ()

    def stream(self, file: IO[bytes]) -> None:
        import tempfile

        py7zr = require("py7zr", "7z")
        with tempfile.TemporaryDirectory() as folder, py7zr.SevenZipFile(file, "w") as archive:
            for name in self.empty_folders:
                archive.write(folder, name)
            for name, content in self.members.items():
                path = Path(folder) / "member"
                content.write(path)
                archive.write(path, name)


def _pour(content: Content | IO[bytes], file: IO[bytes]) -> None:
    if isinstance(content, Content):
        content.stream(file)
    else:
        shutil.copyfileobj(content, file, _CHUNK)
