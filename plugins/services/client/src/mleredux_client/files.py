"""Store downloaded files atomically within their folder, and resume broken downloads."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from fnmatch import fnmatchcase
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Self

from mleredux.models import Artifact
from mleredux.models.paths import unescaped

from mleredux_client.errors import Damaged, UnsafePath

try:
    import fcntl
except ImportError:  # on Windows, partial files have unique names, so that no locks are needed
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".mleredux-partial"
"""Name of the folder for unfinished downloads, inside the folder for finished ones."""


def target_of(folder: Path, name: str) -> Path:
    """Return the target path of an artifact, with the name that its file has in the run.

    Raises:
        UnsafePath: The path would be outside the folder, perhaps because of links in it.
    """
    parts = _own_name(name).split("/")
    problem = UnsafePath(
        f"The artifact {name[:200]!r} can't be stored inside {folder}.",
        hint="Fetch it alone, with `.read()` or `.save()`.",
    )
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or parts[0] == PARTIAL:
        raise problem
    target = folder.joinpath(*parts)
    if target.anchor != folder.anchor:
        raise problem
    base = folder.resolve()
    try:
        inside = target.parent.resolve().is_relative_to(base) and target.name == parts[-1]
    except (OSError, RuntimeError):
        inside = False
    if not inside:
        raise problem
    return target


def _own_name(listed: str) -> str:
    """Return the path of a file from a manifest's path, in which unprintable characters are escaped; on Windows, they
    stay escaped."""
    if os.name != "posix":
        return listed
    name = os.fsdecode(unescaped(listed))
    return listed if "\0" in name else name


def matches(path: str, pattern: str | None) -> bool:
    """Return whether a path matches a pattern: `*` also matches `/`, and a pattern without a slash matches names in any
    folder."""
    if pattern is None or fnmatchcase(path, pattern):
        return True
    return "/" not in pattern and fnmatchcase(path.rsplit("/", 1)[-1], pattern)


def is_downloaded(target: Path, artifact: Artifact) -> bool:
    """Return whether a file with exactly these bytes already exists."""
    if artifact.sha256 is None or target.is_symlink() or not target.is_file():
        return False
    if target.stat().st_size != artifact.size:
        return False
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256


class Partial:
    """An unfinished download: a file that contains its first bytes, and is moved to the target at the end.

    Several threads and processes may download the same file concurrently: all but the first one use separate files.

    Attributes:
        tag: The `ETag` of the download, once known.

    Args:
        target: The target path.
        key: Identifies the downloaded content; a partial file is resumed only with the same key.
        keep: The folder for partial files; None: a separate file next to the target.
    """

    def __init__(self, target: Path, key: str = "", keep: Path | None = None) -> None:
        self.target, self._keep = target, keep
        self.tag: str | None = None
        target.parent.mkdir(parents=True, exist_ok=True)
        shared = self._shared(keep, key) if keep is not None and fcntl is not None else None
        self._resumable = shared is not None
        self._file, self._path = shared or self._own(keep or target.parent)
        self._done = False
        self._hash = hashlib.file_digest(self._file, "sha256")

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.tell()

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the bytes so far."""
        return self._hash.hexdigest()

    def write(self, piece: bytes) -> None:
        """Append bytes."""
        self._file.write(piece)
        self._hash.update(piece)

    def restart(self) -> None:
        """Discard the bytes so far."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()

    def finish(self, artifact: Artifact | None = None) -> Path:
        """Check the file, and move it to the target.

        Raises:
            Damaged: The bytes do not match the manifest.
        """
        if artifact is not None and artifact.sha256 is not None and self.sha256 != artifact.sha256:
            self.restart()
            hint = "Download it again."
            raise Damaged(f"{artifact.path[:200]!r} does not match its hash in the manifest.", hint=hint)
        self._file.flush()
        if fcntl is None:  # Windows can't move open files
            self._file.close()
        self._path.replace(self.target)
        self._done = True
        return self.target

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done and self._resumable and self.size == 0:
            self._path.unlink(missing_ok=True)  # while it is locked, so that no one else writes it
        self._file.close()
        if not self._done and not self._resumable:
            self._path.unlink(missing_ok=True)
        if self._keep is not None:
            with contextlib.suppress(OSError):  # it contains other downloads' partial files
                self._keep.rmdir()

    def _shared(self, folder: Path, key: str) -> tuple[BufferedRandom, Path] | None:
        """Open the partial file of this key with its content; return None if someone else is writing it."""
        path = folder / hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]
        while True:
            try:
                _make_folder(folder)
                file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "r+b")
            except FileNotFoundError:  # another download removed the folder when it ended
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                    return file, path
            except BlockingIOError:
                file.close()
                return None
            except FileNotFoundError:
                pass  # the download was finished between opening and locking
            file.close()

    def _own(self, folder: Path) -> tuple[BufferedRandom, Path]:
        while True:
            try:
                _make_folder(folder)
                path = folder / f".part-{secrets.token_hex(8)}"
                return path.open("x+b"), path
            except FileNotFoundError:
                continue


def _make_folder(folder: Path) -> None:
    """Create a folder that other downloads remove as soon as it is empty, even between two steps of `Path.mkdir`."""
    try:
        folder.mkdir()
    except FileExistsError:
        if os.path.lexists(folder) and not folder.is_dir():
            raise
