"""Unpack folders uploaded as compressed tar archives; names, links, types and sizes are checked before anything is
written."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path, PurePosixPath

from mleredux_server.protocol.problems import Problem

MOST_FILES = 20_000
_LONGEST, _LONGEST_PART, _DEEPEST = 1024, 255, 50
"""Maximum bytes of a path and of a name in it, and maximum number of names in a path."""
_HEADERS = 4096
"""Maximum bytes of headers of one member."""
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


@dataclass
class Packed:
    """An unpacked folder.

    Attributes:
        size: Size of all files in bytes.
        digest: SHA-256 of the sorted lines `KIND HASH PATH`, each ending with a newline; KIND is `file`, `program` or
            `link`, and HASH is the SHA-256 of the content, or of the link's target.
    """

    size: int = 0
    files: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return hashlib.sha256("".join(sorted(self.lines)).encode()).hexdigest()


class _Limited(BufferedIOBase):
    """A stream that raises an error after a given number of bytes, since small archives may unpack to any size."""

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._stream.read(self._left + 1 if size is None or size < 0 else size)
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._most)
        return data


def unpack(archive: Path, target: Path, most: int) -> Packed:
    """Unpack a `.tar.gz` of files, folders and links within it into a new folder.

    Args:
        archive: The file.
        target: The new folder, which must not exist.
        most: Maximum size of all files in bytes.

    Raises:
        Problem: It is not such an archive, or is too large.
    """
    packed = Packed()
    target.mkdir(mode=0o700)
    try:
        with (
            gzip.open(archive) as plain,
            tarfile.open(fileobj=_Limited(plain, most + MOST_FILES * _HEADERS), mode="r|", errorlevel=2) as tar,
        ):
            links = [member for member in _members(tar, most) if not _write(tar, member, target, packed)]
        for member in links:  # after all files, so that no file is written through a link
            _link(member, target, packed)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError, ValueError) as error:
        raise _refused("is not a gzip-compressed tar, or is damaged") from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _refused("has a name twice") from error
    if not packed.files:
        raise _refused("has no files")
    _check_links(target)
    return packed


def too_large(most: int) -> Problem:
    """Return the error for a folder that exceeds the limit."""
    hint = "Exclude data with .gitignore or .dockerignore; the build or the task provides it."
    return Problem("too-large", f"The agent's folder has more than {most >> 20} MB or {MOST_FILES:,} files.", hint=hint)


def _members(tar: tarfile.TarFile, most: int) -> Iterator[tarfile.TarInfo]:
    size = 0
    for count, member in enumerate(tar, 1):
        size += member.size
        if count > MOST_FILES or size > most or member.size < 0:
            raise too_large(most)
        yield member


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, packed: Packed) -> bool:
    """Write a file or create a folder; return False for a link."""
    if member.isdir() and PurePosixPath(member.name) == PurePosixPath():
        return True
    name = _checked(member.name)
    place = target / name
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return True
    packed.files += 1
    if member.issym():
        return False
    if member.type not in _PLAIN or member.issparse():
        raise _refused(f"contains something other than a file, folder or link: {name}")
    content = tar.extractfile(member)
    assert content is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    program = bool(member.mode & 0o100)
    digest = hashlib.sha256()
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755 if program else 0o644)
    with os.fdopen(handle, "wb") as file:
        while block := content.read(1 << 20):
            digest.update(block)
            file.write(block)
    packed.size += member.size
    packed.lines.append(f"{'program' if program else 'file'} {digest.hexdigest()} {name}\n")
    return True


def _link(member: tarfile.TarInfo, target: Path, packed: Packed) -> None:
    name, link = _checked(member.name), member.linkname
    place = target / name
    if not link or link.startswith("/") or not _fits(link):
        raise _refused(f"contains a link that points outside: {name}")
    if any((target / parent).is_symlink() for parent in PurePosixPath(name).parents):
        raise _refused(f"has a file below a link: {name}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(link)
    packed.lines.append(f"link {hashlib.sha256(link.encode()).hexdigest()} {name}\n")


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    parts = path.parts
    outside = not parts or path.is_absolute() or ".." in parts or len(parts) > _DEEPEST
    if outside or not _fits(name) or "\\" in name or ".git" in (part.lower() for part in parts):
        raise _refused(f"has an invalid name: {name[:100]!r}")
    return str(path)


def _fits(path: str) -> bool:
    """Return whether a path is printable, and file systems can store it."""
    longest = max((len(os.fsencode(part)) for part in path.split("/")), default=0) if path.isprintable() else 0
    return path.isprintable() and longest <= _LONGEST_PART and len(os.fsencode(path)) <= _LONGEST


def _check_links(target: Path) -> None:
    """Check that every link resolves to a path inside the folder, through any number of other links."""
    root = target.resolve()
    for folder, folders, names in os.walk(target):
        for name in (*folders, *names):
            path = Path(folder) / name
            try:
                inside = not path.is_symlink() or path.resolve().is_relative_to(root)
            except (OSError, RuntimeError):
                inside = False
            if not inside:
                shutil.rmtree(target, ignore_errors=True)
                raise _refused(f"contains a link that points outside: {path.relative_to(target)}")


def _refused(what: str) -> Problem:
    return Problem("invalid", f"The archive {what}.", hint="`mleredux run --agent FOLDER` creates a valid one.")
