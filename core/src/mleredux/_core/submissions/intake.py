"""Accept an agent's output, which is hostile input: no links are followed, and everything has a limit."""

from __future__ import annotations

import contextlib
import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mleredux._core.submissions.files import open_regular
from mleredux.models import Artifact
from mleredux.models.formats import counted
from mleredux.models.paths import readable

MEDIA_TYPES = {
    ".log": "text/plain",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".ipynb": "application/x-ipynb+json",
}


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
HARD_LINKED = "has more than one hard link"


@dataclass(frozen=True)
class IntakeLimits:
    """Limits on the files in the manifest; all others are listed as skipped."""

    files: int = 10_000
    """Maximum number of files."""
    depth: int = 40
    """Maximum depth of folders."""
    file_bytes: int = 4 << 30
    """Maximum size of a file, in bytes."""
    total_bytes: int = 32 << 30
    """Maximum size of all files together, in bytes."""
    named: int = 1_000
    """Maximum number of skipped paths that are listed individually."""


@dataclass(frozen=True)
class FoundFile:
    """An entry in the tree: a regular file to store, or the reason for skipping it."""

    path: bytes
    """The path under the folder, as bytes."""
    size: int = 0
    """Size in bytes."""
    reason: str | None = None
    """Why the file is skipped; None if it is stored."""


def walk(root: Path, limits: IntakeLimits = IntakeLimits()) -> Iterator[FoundFile]:
    """Yield everything under a folder, sorted by name, with the reason for each skipped file.

    Links are never followed. A folder below the depth limit is skipped entirely. The content of the tree never causes
    an exception.

    Args:
        root: The folder.
        limits: Limits on the stored files.
    """
    taken = taken_bytes = 0
    stack: list[tuple[bytes, int]] = [(b"", 0)]
    base = os.fsencode(root)
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(os.path.join(base, folder)) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield FoundFile(folder, reason=f"can't be read ({error.strerror})")
            continue
        folders = []
        for entry in listed:
            path = os.path.join(folder, entry.name) if folder else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                yield FoundFile(path, reason=f"can't be read ({error.strerror})")
                continue
            if stat.S_ISDIR(status.st_mode):
                if depth + 1 >= limits.depth:
                    yield FoundFile(path, reason=f"is nested more than {limits.depth} folders deep")
                else:
                    folders.append((path, depth + 1))
                continue
            reason = _reason(status, limits)
            if reason is None and taken >= limits.files:
                reason = f"there are more than {limits.files:,} files"
            if reason is None and taken_bytes + status.st_size > limits.total_bytes:
                reason = f"all files together are larger than {limits.total_bytes >> 30} GiB"
            if reason is None:
                taken += 1
                taken_bytes += status.st_size
            yield FoundFile(path, status.st_size, reason)
        stack.extend(reversed(folders))


def _reason(status: os.stat_result, limits: IntakeLimits) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_size > limits.file_bytes:
        return f"is larger than {limits.file_bytes >> 30} GiB"
    return HARD_LINKED if status.st_nlink > 1 else None


def take(root: Path, prefix: str, producer: str, limits: IntakeLimits) -> tuple[list[Artifact], list[dict[str, str]]]:
    """Return the artifacts of a tree with their hashes, and the skipped files.

    Args:
        root: The folder.
        prefix: The prefix of each path: the folder's name in the run, with `/`.
        producer: The producer of the files.
        limits: Limits on the stored files.
    """
    artifacts: list[Artifact] = []
    left_out: list[dict[str, str]] = []
    unnamed = 0
    for file in walk(root, limits):
        reason, digest = file.reason, None
        path = prefix + readable(file.path)
        if reason is None:
            try:
                digest = hash_regular(os.path.join(os.fsencode(root), file.path), file.size)
            except OSError as error:
                reason = str(error)
        if reason is None:
            artifacts.append(
                Artifact(path=path, media_type=media_type(path), size=file.size, sha256=digest, producer=producer)
            )
        elif len(left_out) < limits.named:
            left_out.append({"path": path, "reason": reason})
        else:
            unnamed += 1
    if unnamed:
        left_out.append({"path": prefix, "reason": f"{counted(unnamed, 'more file')} skipped"})
    return artifacts, left_out


def hash_regular(path: bytes | str | Path, size: int | None = None) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal. Links are not followed.

    Args:
        path: The file.
        size: Maximum number of bytes to read from a file that may be growing.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        left = size if size is not None else os.fstat(file.fileno()).st_size
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def media_type(path: str) -> str:
    """Return the media type for a file's extension."""
    ending = os.path.splitext(path)[1].lower()
    return MEDIA_TYPES.get(ending) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def disk_usage(*roots: Path, give_up_after: int = 300_000) -> tuple[int, int]:
    """Return the bytes that folders occupy on disk (allocated blocks), and the number of their files and folders.

    Works for any depth and any length of paths. Other file systems mounted there are not counted; unreadable folders of
    the same owner are made readable.

    Args:
        roots: Folders or files; links are not followed.
        give_up_after: Stop after counting this many files and folders.
    """
    total = files = 0
    for root in roots:
        with contextlib.suppress(OSError):
            status = os.lstat(root)
            total, files = total + status.st_blocks * 512, files + 1
            if stat.S_ISDIR(status.st_mode):
                below = _usage_below(os.open(root, _FOLDER), status.st_dev, give_up_after - files)
                total, files = total + below[0], files + below[1]
    return total, files


def _usage_below(top: int, device: int, most: int) -> tuple[int, int]:
    """Return the usage under an open folder, as `disk_usage` does, and close it. Few folders are open at once: parents
    are opened through `..`."""
    total = files = 0
    here, ways = top, [_usage_here(top, device)]
    try:
        while ways:
            (size, count, left), ways[-1] = ways[-1], (0, 0, ways[-1][2])
            total, files = total + size, files + count
            if files >= most:
                break
            try:
                name = left.pop() if left else ".."
                if name == "..":
                    ways.pop()
                    if not ways:
                        break
                below = _open_folder(name, here)
            except OSError:
                if name == "..":  # it was moved in the meantime
                    break
                continue
            os.close(here)
            here = below
            if name != "..":
                ways.append(_usage_here(here, device))
    finally:
        os.close(here)
    return total, files


def _usage_here(folder: int, device: int) -> tuple[int, int, list[str]]:
    """Return bytes and number of the entries directly in an open folder, and the names of its subfolders."""
    total = files = 0
    names = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
            if status.st_dev != device:
                continue
            total, files = total + status.st_blocks * 512, files + 1
            if stat.S_ISDIR(status.st_mode):
                names.append(entry.name)
    return total, files, names


def _open_folder(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
        finally:
            os.close(descriptor)
        return os.open(name, _FOLDER, dir_fd=folder)
