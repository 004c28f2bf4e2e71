"""Prepared data on disk, in MLE-bench's layout: `<data>/<task>/prepared/{public,private}`, and raw data beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.errors import DataError, MlereduxError, TaskBroken
from mleredux.models import Task
from mleredux.store.files import FileLock, write_atomically
from mleredux.submissions.schema import write_schema

DATA_VARIABLE = "MLEREDUX_DATA"
_BLOCK = 1 << 20

Preparer = Callable[[Task, Path, Path, Path], bool | None]
Progress = Callable[[str], None]


def default_data_dir() -> Path:
    """`MLEREDUX_DATA`, or `mleredux/data` in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(DATA_VARIABLE) or cache / "mleredux" / "data")


@dataclass(frozen=True)
class Prepared:
    """A task's prepared files.

    Attributes:
        public: What the agent may see.
        private: The answers.
        schema: The folder of the submission schema.
        digest: Identity of the prepared files: names and sizes of all, MD5 of those with published checksums.
    """

    public: Path
    private: Path
    schema: Path
    digest: str


class DataStore:
    """Raw and prepared data of tasks in one directory.

    Args:
        path: The directory; `default_data_dir()` where None.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else default_data_dir()

    def raw(self, task: Task) -> Path:
        """Where the task's raw files are, or belong. Variants share those of their base."""
        return self.path / (task.raw_id or task.id) / "raw"

    def home(self, task: Task) -> Path:
        """The task's own folder."""
        return self.path / task.id

    def find(self, task: Task) -> Prepared | None:
        """The task's prepared files where they are complete and of its version, else None.

        A directory that MLE-bench prepared is recognised, checked and recorded.

        Raises:
            DataError: They are of another version of the task, or damaged.
        """
        prepared = self.home(task) / "prepared"
        if not (prepared / "public").is_dir() or not (prepared / "private").is_dir():
            return None
        record = self._record(task)
        if record is None:
            record = self._adopt(task, prepared)
        if record["task_version"] != task.version:
            raise DataError(
                f"The prepared data of {task.id} in {prepared} are of version {record['task_version']}, "
                f"the task is of version {task.version}.",
                hint=f"Prepare them again: `mleredux prepare {task.id} --force`.",
            )
        return Prepared(prepared / "public", prepared / "private", Path(record["schema"]), record["digest"])

    def prepare(
        self,
        task: Task,
        preparer: Preparer,
        *,
        force: bool = False,
        source: Path | None = None,
        keep_raw: bool = False,
        progress: Progress = lambda _message: None,
    ) -> Prepared:
        """Prepare a task's files, unless they are there. Several processes may ask at once: one does the work.

        Args:
            task: The task.
            preparer: Writes public and private files from raw ones; True where it did.
            force: Prepare again what is prepared.
            source: A folder (used where it is) or a zip (unpacked one level) with the raw data.
            keep_raw: Keep raw data that were fetched or unpacked; else they go once the prepared files are in place.
            progress: Told what is going on.

        Raises:
            DataError: Raw data are missing or damaged.
            TaskBroken: Preparing failed, or gave other bytes than published.
        """
        home = self.home(task)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"The data directory {self.path} can't be written: {error.strerror or error}.",
                hint="Name another with --data-dir.",
            ) from error
        lock: contextlib.AbstractContextManager[object] = (
            FileLock(home / ".lock") if os.access(home, os.W_OK) else contextlib.nullcontext()
        )
        with lock:
            if not force and (found := self.find(task)):
                return found
            raw, ours = self._find_raw(task, source, progress)
            progress("splitting into public and private files")
            with _scratch(home) as scratch:
                (scratch / "public").mkdir()
                (scratch / "private").mkdir()
                self._run_preparer(task, preparer, raw, scratch)
                progress("checking")
                _check_published(task, scratch)
                write_schema(task, scratch / "public", scratch / "schema")
                self._write_record(task, scratch, schema=home / "prepared" / "schema")
                _replace(scratch, home / "prepared")
            if ours and not keep_raw:
                shutil.rmtree(raw, ignore_errors=True)
        found = self.find(task)
        if found is None:
            raise DataError(f"The prepared data of {task.id} vanished from {home}.")
        return found

    def _find_raw(self, task: Task, source: Path | None, progress: Progress) -> tuple[Path, bool]:
        """The folder of raw data, and whether it was made just now."""
        if source is not None and source.is_dir():
            return source, False
        raw = self.raw(task)
        if source is None and raw.is_dir() and any(raw.iterdir()):
            return raw, False
        raw.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(raw.parent) as scratch:
            if source is not None:
                progress(f"unpacking {source.name}")
                _unpack(source, scratch)
            else:
                self._fetch(task, scratch, progress)
            _replace(scratch, raw)
        return raw, True

    def _fetch(self, task: Task, folder: Path, progress: Progress) -> None:
        if task.fetch is None:
            raise DataError(
                f"The raw data of {task.id} are not in {self.raw(task)}.",
                hint=f"Get them with `mleredux prepare {task.id} --from FOLDER_OR_ZIP`.",
            )
        progress("getting the raw data")
        task.fetch(folder)

    def _run_preparer(self, task: Task, preparer: Preparer, raw: Path, scratch: Path) -> None:
        try:
            done = preparer(task, raw, scratch / "public", scratch / "private")
        except MlereduxError:
            raise
        except Exception as error:
            raise TaskBroken(
                f"Preparing {task.id} failed ({type(error).__name__}: {' '.join(str(error).split())}).",
                hint="Look at its raw data; --debug shows where.",
            ) from error
        if not done:
            raise TaskBroken(f"No plugin knows how to prepare {task.id}.", hint="Declare its `prepare` function.")

    def _record(self, task: Task) -> dict[str, Any] | None:
        for folder in (self.home(task) / "prepared", self._record_cache(task)):
            path = folder / "prepared.json"
            if path.is_file():
                record: dict[str, Any] = json.loads(path.read_bytes())
                return {**record, "schema": folder / "schema"}
        return None

    def _record_cache(self, task: Task) -> Path:
        """Where the record lies of a prepared directory that may not be written."""
        key = hashlib.sha256(str(self.home(task).resolve()).encode()).hexdigest()[:16]
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux" / "records" / key

    def _adopt(self, task: Task, prepared: Path) -> dict[str, Any]:
        _check_published(task, prepared)
        folder = prepared if os.access(prepared, os.W_OK) else self._record_cache(task)
        folder.mkdir(parents=True, exist_ok=True)
        write_schema(task, prepared / "public", folder / "schema")
        return self._write_record(task, prepared, schema=folder / "schema", folder=folder)

    def _write_record(self, task: Task, prepared: Path, *, schema: Path, folder: Path | None = None) -> dict[str, Any]:
        digest = tree_digest(prepared)
        record = {"task": task.id, "task_version": task.version, "digest": digest}
        write_atomically((folder or prepared) / "prepared.json", json.dumps(record, indent=1) + "\n")
        return {**record, "schema": schema}


def tree_digest(prepared: Path) -> str:
    """Identity of prepared files: paths and sizes of all, and the content of those below 1 MiB."""
    digest = hashlib.sha256()
    for part in ("public", "private"):
        for path in sorted((prepared / part).rglob("*")):
            if path.is_file():
                size = path.stat().st_size
                digest.update(f"{path.relative_to(prepared)}\0{size}\0".encode(errors="surrogateescape"))
                if size < _BLOCK:
                    digest.update(path.read_bytes())
    return digest.hexdigest()


def md5(path: Path) -> str:
    """MD5 of a file's content, in hexadecimal, read in blocks of 1 MiB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _check_published(task: Task, prepared: Path) -> None:
    differing = []
    for part, files in task.checksums.items():
        for name, published in files.items():
            path = prepared / part / name
            if not path.is_file():
                differing.append(f"{part}/{name} is missing")
            elif (found := md5(path)) != published:
                differing.append(f"{part}/{name} has MD5 {found}, published is {published}")
    if differing:
        raise DataError(
            f"The prepared files of {task.id} are not the published ones: {'; '.join(differing)}.",
            hint="The raw data differ from those the task was made for; get them anew.",
        )


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip one level; archives inside stay packed."""
    if not archive.exists():
        raise DataError(f"{archive} does not exist.", hint="Name a folder or a zip with --from.")
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise DataError(f"{archive} can't be unpacked: {error}.", hint="Get the archive anew.") from error


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """A folder beside its final place, gone afterwards unless it was moved there; leftovers of crashes are removed."""
    for leftover in parent.glob(".making-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replace(new: Path, place: Path) -> None:
    """Put a finished folder in its place. What lay there goes only when the new one is complete."""
    if place.exists():
        old = place.with_name(f".making-old-{place.name}")
        shutil.rmtree(old, ignore_errors=True)
        place.rename(old)
        new.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    else:
        new.rename(place)
