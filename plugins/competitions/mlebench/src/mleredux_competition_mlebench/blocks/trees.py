"""Trees of raw files: a folder, or an archive that is read in place and never unpacked."""

from __future__ import annotations

import io
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import IO, NamedTuple

from mleredux.errors import DataError
from mleredux.plugin.task import neutral_order

Names = Iterable[object]
"""File names as a list, an array or a pandas series of texts (or of values whose text form is the name)."""


class Member(NamedTuple):
    """A file of a tree to write under another name, relative to some target."""

    source: str
    name: str


Stream = Generator[tuple[str, IO[bytes]], None, None]
"""Names and open contents, each valid until the next is requested."""


@dataclass(frozen=True)
class Files:
    """A selection of a tree's files, each with its new name, and of folders without any of them."""

    tree: Tree
    members: Sequence[Member]
    folders: Sequence[str] = ()

    def pairs(self, target: Path) -> list[tuple[str, str]]:
        """Yield each file's name in the tree and its path under `target`: strings, because there may be millions."""
        folder = str(target)
        return [(source, f"{folder}/{name}") for source, name in self.members]

    def without(self, drop: Callable[[str], bool]) -> Files:
        """Return the selection without the files whose new name `drop` accepts."""
        return Files(self.tree, [member for member in self.members if not drop(member.name)], self.folders)

    def stream(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the new name and open content of every file, in neutral order."""
        names: dict[str, list[str]] = {}
        sources = {member.name: member.source for member in self.members}
        for name in neutral_order(sources):
            names.setdefault(sources[name], []).append(name)
        for source, content in self.tree.in_order(names):
            if len(names[source]) == 1:
                yield names[source][0], content
            else:
                data = content.read()
                yield from ((name, io.BytesIO(data)) for name in names[source])


class Tree(ABC):
    """Files by name (relative, with `/`).

    Args:
        where: The tree's name in messages.
    """

    def __init__(self, where: str) -> None:
        self.where = where

    @cached_property
    def _listing(self) -> tuple[dict[str, int], list[str]]:
        return self._list()

    @property
    def sequential(self) -> bool:
        """Whether files can be streamed only in stored order."""
        return False

    @property
    def files(self) -> dict[str, int]:
        """Return the size of each file by name, in stored order."""
        return self._listing[0]

    @property
    def folders(self) -> list[str]:
        """Return the names of folders listed in the tree."""
        return self._listing[1]

    @abstractmethod
    def _list(self) -> tuple[dict[str, int], list[str]]: ...

    @abstractmethod
    def extract(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Write files to paths that don't exist yet, in the order given."""

    @abstractmethod
    def stream(self, wanted: Collection[str]) -> Stream:
        """Yield files, each content valid until the next is requested; in the order requested if not `sequential`."""

    def in_order(self, wanted: Collection[str]) -> Stream:
        """Yield files as `stream` does, in the order requested."""
        return spooled(lambda paths: self.extract([*paths.items()]), wanted) if self.sequential else self.stream(wanted)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open one file for sequential reading.

        Raises:
            DataError: The tree does not contain the file.
        """
        self.need([name])
        stream = self.stream({name})
        _, content = next(stream)
        try:
            yield content
        except Exception as error:
            stream.throw(error)  # the tree knows which errors indicate damage
            raise

    def read(self, name: str) -> bytes:
        """Return one file's bytes.

        Raises:
            DataError: The tree has no such file.
        """
        with self.open(name) as content:
            return content.read()

    def need(self, names: Sequence[str]) -> None:
        """Check that files exist.

        Raises:
            DataError: Files are missing; the message names the first and counts the rest.
        """
        files = self.files
        missing = [name for name in names if name not in files]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DataError(
                f"{self.where} has no file {missing[0]}{more} of the {len(names)} required ones.",
                hint="Get the raw data again; the download may be incomplete.",
            )

    def pick(self, sources: Names, names: Names | None = None) -> Files:
        """Select files, and rename them.

        Args:
            sources: Names in the tree.
            names: New names, in the same order; unchanged if not given.

        Raises:
            DataError: Files are missing.
        """
        old = [str(source) for source in sources]
        new = old if names is None else [str(name) for name in names]
        pairs = dict.fromkeys(zip(old, new, strict=True))  # a file that several rows share is listed once
        if len({name for _, name in pairs}) < len(pairs):
            raise DataError(f"Two files of {self.where} would have the same name.", hint="Check the raw tables' ids.")
        self.need(old)
        return Files(self, list(starmap(Member, pairs)))

    def pick_folders(self, sources: Names, names: Names | None = None) -> Files:
        """Select whole folders by name, and rename them.

        Raises:
            DataError: Folders are missing.
        """
        old = [str(source) for source in sources]
        new = dict(zip(old, old if names is None else map(str, names), strict=True))
        depth = {source.count("/") + 1 for source in old}
        members, folders, present = [], [], set()
        for kind in (self.files, self.folders):
            for path in kind:
                parts = path.split("/")
                for cut in depth:
                    top = "/".join(parts[:cut])
                    if top in new and (kind is self.folders or len(parts) > cut):
                        present.add(top)
                        name = new[top] + path[len(top) :]
                        folders.append(name) if kind is self.folders else members.append(Member(path, name))
        missing = [source for source in old if source not in present]
        if missing:
            raise DataError(
                f"{self.where} has no folder {missing[0]} ({len(missing)} of {len(old)} are missing).",
                hint="Get the raw data again; the download may be incomplete.",
            )
        return Files(self, members, folders)

    def all(self, keep: Callable[[str], bool] = lambda _name: True) -> Files:
        """Select every file that `keep` accepts, and every folder."""
        return Files(self, [Member(name, name) for name in self.files if keep(name)], self.folders)

    def names(self, suffix: str = "") -> list[str]:
        """Return the names of files with an ending, sorted as text."""
        return sorted(name for name in self.files if name.endswith(suffix))

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file, sorted by name."""
        return {name: self.files[name] for name in sorted(self.files)}

    def inside(self, folder: str) -> Tree:
        """Return the part of the tree under a folder."""
        return _Part(self, folder.rstrip("/") + "/") if folder else self


def spooled(unpack: Callable[[dict[str, str]], None], wanted: Collection[str]) -> Stream:
    """Yield the requested files in the order requested, after `unpack` has written them to paths, by name."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: f"{folder}/{number}" for number, name in enumerate(wanted)}
        unpack(paths)
        for name, path in paths.items():
            with open(path, "rb") as content:  # noqa: PTH123
                yield name, content
            os.unlink(path)  # noqa: PTH108


@dataclass
class _Part(Tree):
    whole: Tree
    prefix: str
    where: str = field(init=False)

    def __post_init__(self) -> None:
        self.where = f"{self.whole.where} ({self.prefix})"

    def _list(self) -> tuple[dict[str, int], list[str]]:
        cut = len(self.prefix)
        files = {name[cut:]: size for name, size in self.whole.files.items() if name.startswith(self.prefix)}
        if not files:
            raise DataError(f"{self.whole.where} has no files in {self.prefix}.", hint="Get the raw data again.")
        folders = (name[cut:] for name in self.whole.folders if name.startswith(self.prefix))
        return files, [name for name in folders if name]

    @property
    def sequential(self) -> bool:
        return self.whole.sequential

    def extract(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.whole.extract([(self.prefix + name, target) for name, target in pairs])

    def stream(self, wanted: Collection[str]) -> Stream:
        for name, content in self.whole.stream(dict.fromkeys(self.prefix + name for name in wanted)):
            yield name[len(self.prefix) :], content


class Folder(Tree):
    """An ordinary folder; its files are linked rather than copied."""

    def __init__(self, root: Path, where: str) -> None:
        super().__init__(where)
        self.root = root

    def _list(self) -> tuple[dict[str, int], list[str]]:
        files: dict[str, int] = {}
        folders: list[str] = []
        pending = [""]
        while pending:
            prefix = pending.pop()
            with os.scandir(self.root / prefix) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    name = prefix + entry.name
                    if entry.is_dir():
                        folders.append(name)
                        pending.append(name + "/")
                    else:
                        files[name] = -1  # each size costs a system call; `sizes` requests them
        return files, folders

    def sizes(self) -> dict[str, int]:
        return {name: (self.root / name).stat().st_size for name in sorted(self.files)}

    def extract(self, pairs: Sequence[tuple[str, str]]) -> None:
        from mleredux_competition_mlebench.blocks.placement import Placer

        Placer().place_all((f"{self.root}/{name}", target) for name, target in pairs)

    def stream(self, wanted: Collection[str]) -> Stream:
        for name in wanted:
            with (self.root / name).open("rb") as content:
                yield name, content

    def read(self, name: str) -> bytes:
        try:
            return (self.root / name).read_bytes()
        except OSError:
            self.need([name])
            raise
