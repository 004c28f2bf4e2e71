"""Unpack zip archives concurrently, with CRC checks."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from mleredux._core.data.neutral import neutral_order
from mleredux._core.data.progress import report
from mleredux.errors import DataError, file_errors

_BLOCK = 1 << 20
_THREADS = 4
_TELL_SECONDS = 0.2
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class DamagedArchive(DataError):
    """An archive is truncated, corrupt, or not a zip file."""


def unpacked_size(archive: Path) -> int:
    """Return the total uncompressed size of a zip's members in bytes.

    Raises:
        DataError: The archive does not exist or is not a zip file.
    """
    with _open(archive) as file:
        return sum(info.file_size for info in file.infolist())


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip file one level; archives inside stay packed.

    Files are created in neutral order in one folder, then moved to their own folders: some file systems choose inodes
    by folder, and raw folders often are classes.

    Args:
        archive: The zip file.
        folder: The existing target folder.

    Raises:
        DamagedArchive: The archive is truncated or corrupt; members unpacked so far remain in the folder.
        DataError: The archive does not exist or contains a name that points outside the folder, or the disk is full.
    """
    with _open(archive) as file:
        members = {_target(info, folder, archive): info for info in file.infolist()}  # the last one of duplicate names
        for place in {target if info.is_dir() else target.parent for target, info in members.items()}:
            place.mkdir(parents=True, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=".unpacking-", dir=folder)
        wanted = {info.filename: (target, info) for target, info in members.items() if not info.is_dir()}
        files = _Shared(map(wanted.__getitem__, neutral_order(wanted)))
        total = sum(info.file_size for info in members.values())
        try:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="unpack") as pool:
                workers = {
                    pool.submit(_extract, file, files, staging) for _ in range(min(_THREADS, os.cpu_count() or 1))
                }
                try:
                    while workers:
                        ended, workers = wait(workers, timeout=_TELL_SECONDS, return_when=FIRST_EXCEPTION)
                        report("unpacking", files.done, total)
                        for worker in ended:
                            worker.result()
                except BaseException:
                    files.stop()
                    raise
        except _DAMAGE as error:
            raise _damaged(archive, error) from error
        except OSError as error:
            raise DataError(
                f"{archive} can't be unpacked into {folder}: {error.strerror or error}.",
                hint="Free some disk space, or choose another folder with --data-dir.",
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def find_source(source: Path | None, name: str) -> Path | None:
    """Return the path of the raw data that a user provides; a folder may hold the archive among other files.

    Args:
        source: A zip file, or a folder that contains the raw files, `NAME.zip` (as downloaded by Kaggle's command, or
            by a browser as `NAME (1).zip`), a folder NAME with one of these, or a single zip file and nothing else.
        name: The name of the data.
    """
    if source is None:
        return None
    source = source.expanduser()
    if not source.is_dir():
        return source
    copies = [source / f"{name}.zip", *source.glob(f"{glob.escape(name)} ([0-9]*).zip")]
    if archives := [path for path in copies if path.is_file()]:
        return max(archives, key=lambda path: path.stat().st_mtime)
    if (source / name).is_dir():
        return find_source(source / name, name)
    only = _content(source)
    if len(only) != 1:
        return source
    inner = find_source(only[0], name)
    return source if inner == only[0] and only[0].suffix != ".zip" else inner


def only_folder(folder: Path) -> Path | None:
    """Return a folder's subfolder if it contains nothing else, else None."""
    content = _content(folder)
    return content[0] if len(content) == 1 and content[0].is_dir() else None


def _content(folder: Path) -> list[Path]:
    """Return the contents of a folder, without files created by file managers."""
    return [path for path in folder.iterdir() if not path.name.startswith(".") and path.name != "__MACOSX"]


def unpack_inner(folder: Path, name: str) -> None:
    """If the only content is an archive or a folder with the name of the data, unpack it or move its content up."""
    while [path.name for path in _content(folder)] in ([f"{name}.zip"], [name]):
        only = _content(folder)[0].rename(folder.with_name(f"{folder.name}-inner"))
        try:
            if only.is_dir():
                for path in only.iterdir():
                    path.rename(folder / path.name)
            else:
                unpack(only, folder)
        finally:
            shutil.rmtree(only) if only.is_dir() else only.unlink()


class _Shared:
    """State shared by workers: remaining files, and bytes done."""

    def __init__(self, files: Iterable[tuple[Path, zipfile.ZipInfo]]) -> None:
        self._files = iter(list(files))
        self._lock = threading.Lock()
        self._stopped = False
        self.done = 0

    def take(self) -> tuple[Path, zipfile.ZipInfo] | None:
        with self._lock:
            return None if self._stopped else next(self._files, None)

    def add(self, count: int) -> bool:
        """Count bytes; return whether to continue."""
        with self._lock:
            self.done += count
            return not self._stopped

    def stop(self) -> None:
        self._stopped = True


def _extract(archive: zipfile.ZipFile, files: _Shared, staging: str) -> None:
    temporary = f"{staging}/{threading.get_ident()}"
    while member := files.take():
        target, info = member
        with archive.open(info) as content, open(temporary, "wb") as place:  # noqa: PTH123
            while block := content.read(_BLOCK):
                place.write(block)
                if not files.add(len(block)):
                    return
        os.replace(temporary, target)  # noqa: PTH105


def _open(archive: Path) -> zipfile.ZipFile:
    if not archive.exists():
        raise DataError(f"{archive} does not exist.", hint="Specify a folder or a zip file with --from.")
    try:
        with file_errors(DataError, f"{archive} can't be read", "Fix its permissions."):
            return zipfile.ZipFile(archive)
    except _DAMAGE as error:
        raise _damaged(archive, error) from error


def _damaged(archive: Path, error: BaseException) -> DamagedArchive:
    return DamagedArchive(
        f"{archive} can't be unpacked: it is truncated or corrupt ({' '.join(str(error).split())}).",
        hint="Download the archive again.",
    )


def _target(info: zipfile.ZipInfo, folder: Path, archive: Path) -> Path:
    parts = [part for part in info.filename.split("/") if part not in ("", ".")]
    if info.filename.startswith("/") or ".." in parts:
        raise DataError(
            f"{archive} contains the path {info.filename!r}, which points outside it.", hint="Use another archive."
        )
    return folder.joinpath(*parts)
