"""Public files, members of archives included, without reading them."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

MOST_FILES = 300_000
LARGEST_PACKED = 256 << 20
"""Bytes of archives that can only be read from one end to the other (7z, compressed tar)."""
_PACKED_TARS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class PublicFile:
    """A file, or a member of an archive (`archive.zip!member`).

    Attributes:
        name: Its path below the public folder.
        size: In bytes.
        time: Its modification time in seconds.
        read: `read(limit)` gives its first bytes.
    """

    name: str
    size: int
    time: float
    read: Callable[[int], bytes] = field(repr=False)
    packed: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """Folders and file name; an archive counts as a folder."""
        return PurePosixPath(self.name.replace("!", "/")).parts


@dataclass
class Inventory:
    """All public files, sorted by name, and what was left out."""

    files: list[PublicFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def take_inventory(public: Path) -> Inventory:
    """List public files; archives are opened one level deep. At most `MOST_FILES` are looked at."""
    found = Inventory()
    for path in _walk(public):
        name = path.relative_to(public).as_posix()
        if len(found.files) >= MOST_FILES:
            found.notes.append(f"Only the first {MOST_FILES} public files were looked at.")
            break
        state = path.stat()
        found.files.append(PublicFile(name, state.st_size, state.st_mtime, _reader(path)))
        try:
            found.files += _members(path, name, found.notes)
        except (OSError, zipfile.BadZipFile, tarfile.TarError, ValueError, NotImplementedError) as error:
            found.notes.append(f"The archive {name} can't be read ({type(error).__name__}).")
    found.files = found.files[:MOST_FILES]
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for home, folders, names in os.walk(folder):
        folders.sort()
        yield from (
            Path(home, name)
            for name in sorted(names)
            if Path(home, name).is_file() and not Path(home, name).is_symlink()
        )


def _reader(path: Path) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        with path.open("rb") as file:
            return file.read(limit)

    return read


def _members(path: Path, name: str, notes: list[str]) -> Iterator[PublicFile]:
    lower = path.name.lower()
    if lower.endswith(".zip"):
        yield from _of_zip(path, name)
    elif lower.endswith((".tar", *_PACKED_TARS, ".7z")):
        if not lower.endswith(".tar") and path.stat().st_size > LARGEST_PACKED:
            notes.append(f"The archive {name} is too large to look into.")
        elif lower.endswith(".7z"):
            yield from _of_7z(path, name, notes)
        else:
            yield from _of_tar(path, name)


def _of_zip(path: Path, name: str) -> Iterator[PublicFile]:
    # Open as long as its members are known: listing a million members again for each would take hours.
    archive = zipfile.ZipFile(path)
    members = [member for member in archive.infolist()[:MOST_FILES] if not member.is_dir()]
    for member in members:

        def read(limit: int, member: zipfile.ZipInfo = member) -> bytes:
            with archive.open(member) as file:
                return file.read(limit)

        try:
            time = datetime(*member.date_time).timestamp()
        except ValueError:
            time = 0.0
        yield PublicFile(f"{name}!{member.filename}", member.file_size, time, read, packed=True)


def _of_tar(path: Path, name: str) -> Iterator[PublicFile]:
    with tarfile.open(path) as archive:
        members = [member for member in archive if member.isfile()][:MOST_FILES]
    for member in members:

        def read(limit: int, member: tarfile.TarInfo = member) -> bytes:
            with tarfile.open(path) as archive:
                file = archive.extractfile(member)
                return b"" if file is None else file.read(limit)

        yield PublicFile(f"{name}!{member.name}", member.size, float(member.mtime), read, packed=True)


def _of_7z(path: Path, name: str, notes: list[str]) -> Iterator[PublicFile]:
    try:
        import py7zr
    except ImportError:
        notes.append(f"The archive {name} was not looked into; pip install 'mleredux-audit[all]' reads it.")
        return
    with py7zr.SevenZipFile(path) as archive:
        listed = [one for one in archive.list() if not one.is_directory]
        small = [one.filename for one in listed if (one.uncompressed or 0) <= LARGEST_PACKED]
        factory = py7zr.io.BytesIOFactory(LARGEST_PACKED)
        if sum(one.uncompressed or 0 for one in listed) > LARGEST_PACKED:
            notes.append(f"The archive {name} is too large to look into.")
            return
        archive.extract(targets=small, factory=factory)
    contents = {member: product.read() if product.seek(0) == 0 else b"" for member, product in factory.products.items()}
    for one in listed:
        content = contents.get(one.filename, b"")
        stamp = one.creationtime.timestamp() if one.creationtime else 0.0
        yield PublicFile(f"{name}!{one.filename}", len(content), stamp, _of_bytes(content), packed=True)


def _of_bytes(content: bytes) -> Callable[[int], bytes]:
    return lambda limit: io.BytesIO(content).read(limit)
