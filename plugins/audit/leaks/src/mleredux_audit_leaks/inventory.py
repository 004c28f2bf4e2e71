"""List public files, including members of archives, without reading them."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

MOST_FILES = 300_000
KEPT_BYTES = 256 << 20
"""Maximum total bytes of members kept from an archive that can only be read sequentially (7z, compressed tar)."""
PASSED_BYTES = 4 << 30
"""Maximum bytes of such an archive that are unpacked to reach its members."""
LARGEST_MEMBER = 96 << 20
_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".npy", ".npz", ".nmea", ".dat", ".xml")
_PACKED_TARS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_ENDINGS = {
    "picture": (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp"),
    "sound": (".wav", ".aif", ".aiff"),
    "dicom": (".dcm", ".dicom"),
    "parquet": (".parquet",),
}
"""File name endings by kind of header."""
_TRACES = {
    "inode": "st_ino",
    "change time": "st_ctime",
    "birth time": "st_birthtime",
    "modification time": "st_mtime",
    "mode": "st_mode mode external_attr",
    "owner": "st_uid st_gid uid gid uname gname",
    "links": "st_nlink",
    "blocks": "st_blocks",
    "attributes": "pax_headers extra comment",
    "compression": "compress_type create_system flag_bits",
}
"""Fields of a status, and of members of tar and zip archives."""


@dataclass(frozen=True)
class PublicFile:
    """A file, or a member of an archive (`archive.zip!member`).

    Attributes:
        name: Its path under the public folder.
        size: Its size in bytes.
        time: Its modification time in seconds.
        read: Returns the first bytes of the file, up to a limit.
        packed: Whether it is a member of an archive.
        listed_only: Whether only its name, size and time are known; reading it returns nothing.
        traces: Other properties that a listing shows, such as the inode or the permissions, by name.
    """

    name: str
    size: int
    time: float
    read: Callable[[int], bytes] = field(repr=False)
    packed: bool = False
    listed_only: bool = False
    traces: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the folders and the file name; an archive counts as a folder."""
        return PurePosixPath(self.name.replace("!", "/")).parts

    @property
    def kind(self) -> str | None:
        """Return the kind of its header, if it has any."""
        return next((kind for kind, ending in _ENDINGS.items() if self.name.lower().endswith(ending)), None)


@dataclass
class Inventory:
    """All public files, sorted by name, and what was skipped."""

    files: list[PublicFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def take_inventory(public: Path) -> Inventory:
    """List public files; archives are opened one level deep. At most `MOST_FILES` are listed."""
    inventory = Inventory()
    for path, place in _walk(public):
        name = path.relative_to(public).as_posix()
        if len(inventory.files) >= MOST_FILES:
            inventory.notes.append(f"Only the first {MOST_FILES} public files were checked.")
            break
        state = path.stat()
        traces = {f"{trace} of the folder": value for trace, value in _traces(path.parent.stat()).items()}
        traces |= _traces(state) | {"place in the listing": str(place)}
        if hasattr(os, "listxattr"):
            traces["attributes"] = str({name: os.getxattr(path, name) for name in os.listxattr(path)})
        if path.is_symlink():
            traces["target folder of the link"] = str(path.readlink().parent)
        read = partial(_head, partial(io.FileIO, path))
        inventory.files.append(PublicFile(name, state.st_size, state.st_mtime, read, traces=traces))
        try:
            inventory.files += _members(path, name, inventory.notes)
        except (OSError, zipfile.BadZipFile, tarfile.TarError, ValueError, NotImplementedError) as error:
            inventory.notes.append(f"The archive {name} can't be read ({type(error).__name__}).")
    inventory.files = inventory.files[:MOST_FILES]
    return inventory


def _walk(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield files sorted by path, with their positions in the unsorted listings of their folders."""
    for home, folders, names in os.walk(folder):
        folders.sort()
        for name, place in sorted(zip(names, range(len(names)), strict=True)):
            path = Path(home, name)
            if path.is_file():
                yield path, place


def _traces(status: object) -> dict[str, str]:
    """Return the metadata of a file, a folder or a member of an archive, except its size and
    name."""
    shown = {
        name: [repr(getattr(status, part)) for part in fields.split() if hasattr(status, part)]
        for name, fields in _TRACES.items()
    }
    return {name: " ".join(values) for name, values in shown.items() if values}


def _head(opened: Callable[[], IO[bytes]], limit: int) -> bytes:
    with opened() as file:
        return file.read(limit)


def _members(path: Path, name: str, notes: list[str]) -> Iterator[PublicFile]:
    lower = path.name.lower()
    if lower.endswith(".zip"):
        yield from _of_zip(path, name)
    elif lower.endswith(".tar"):
        yield from _of_tar(path, name)
    elif lower.endswith(_PACKED_TARS):
        yield from _of_packed_tar(path, name, notes)
    elif lower.endswith(".7z"):
        yield from _of_7z(path, name, notes)


def _of_zip(path: Path, name: str) -> Iterator[PublicFile]:
    # The archive stays open while its members are in use: listing a million members again for each would take hours.
    archive = zipfile.ZipFile(path)
    members = [member for member in archive.infolist()[:MOST_FILES] if not member.is_dir()]
    for member in members:
        read = partial(_head, partial(archive.open, member))
        try:
            time = datetime(*member.date_time).timestamp()
        except ValueError:
            time = 0.0
        yield PublicFile(f"{name}!{member.filename}", member.file_size, time, read, packed=True, traces=_traces(member))


def _of_tar(path: Path, name: str) -> Iterator[PublicFile]:
    with tarfile.open(path) as archive:
        members = [member for member in archive if member.isfile()][:MOST_FILES]
    for member in members:

        def read(limit: int, member: tarfile.TarInfo = member) -> bytes:
            with tarfile.open(path) as archive:
                file = archive.extractfile(member)
                return b"" if file is None else file.read(limit)

        yield PublicFile(f"{name}!{member.name}", member.size, member.mtime, read, packed=True, traces=_traces(member))


class _Budget:
    """Chooses the members whose contents are kept: tables first, then as many others as fit into half of the bytes."""

    def __init__(self) -> None:
        self.left = KEPT_BYTES

    def keeps(self, name: str, size: int) -> bool:
        """Return whether to keep a member, and deduct its size from the remaining bytes."""
        reserved = 0 if name.lower().endswith(_TABLES) else KEPT_BYTES // 2
        if size > LARGEST_MEMBER or size > self.left - reserved:
            return False
        self.left -= size
        return True


def _of_packed_tar(path: Path, name: str, notes: list[str]) -> Iterator[PublicFile]:
    """Yield the members of a compressed tar file in one pass."""
    budget, passed, without = _Budget(), 0, 0
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if not member.isfile():
                continue
            content = None
            if budget.keeps(member.name, member.size) and (stream := archive.extractfile(member)) is not None:
                content = stream.read()
            without += content is None
            yield _member(f"{name}!{member.name}", member.size, member.mtime, content, _traces(member))
            passed += member.size
            if passed > PASSED_BYTES:
                notes.append(f"Only the first {PASSED_BYTES >> 30} GB of the archive {name} were unpacked.")
                break
    if without:
        notes.append(f"Of {without} members of the archive {name}, only names, sizes and times were checked.")


def _of_7z(path: Path, name: str, notes: list[str]) -> Iterator[PublicFile]:
    try:
        import py7zr
    except ImportError:
        notes.append(f"The archive {name} was not opened; to enable: pip install 'mleredux-audit-leaks[all]'.")
        return
    budget = _Budget()
    with py7zr.SevenZipFile(path) as archive:
        listed = [entry for entry in archive.list() if not entry.is_directory][:MOST_FILES]
        # Members are compressed together, so reading any of them may require unpacking all of them.
        whole = sum(entry.uncompressed or 0 for entry in listed) <= PASSED_BYTES
        chosen = [entry.filename for entry in listed if whole and budget.keeps(entry.filename, entry.uncompressed or 0)]
        factory = py7zr.io.BytesIOFactory(LARGEST_MEMBER)
        if chosen:
            archive.extract(targets=chosen, factory=factory)
    contents = {member: product.read() if product.seek(0) == 0 else b"" for member, product in factory.products.items()}
    if len(chosen) < len(listed):
        without = len(listed) - len(chosen)
        notes.append(f"Of {without} members of the archive {name}, only names, sizes and times were checked.")
    for entry in listed:
        stamp = entry.creationtime.timestamp() if entry.creationtime else 0.0
        yield _member(f"{name}!{entry.filename}", entry.uncompressed or 0, stamp, contents.get(entry.filename), {})


def _member(name: str, size: int, time: float, content: bytes | None, traces: Mapping[str, str]) -> PublicFile:
    def read(limit: int) -> bytes:
        return (content or b"")[:limit]

    return PublicFile(name, size, time, read, packed=True, listed_only=content is None, traces=traces)
