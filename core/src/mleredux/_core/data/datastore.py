"""Prepared data on disk, in MLE-bench's layout: `<data>/<task>/prepared/{public,private}`, with raw data next to it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mleredux._core.data.archives import find_source, only_folder, unpack, unpack_inner
from mleredux._core.data.checksums import (
    CHECKSUMS_FILE,
    ChecksumMismatch,
    Difference,
    differences,
    published_digests,
    tree_digest,
)
from mleredux._core.data.folders import lock, replace, scratch_folder
from mleredux._core.data.installation import write_canary
from mleredux._core.data.neutral import inodes, renew, settle_time, settle_times
from mleredux._core.data.progress import report
from mleredux._core.locations import cache_dir, default_data_dir
from mleredux._core.plain import recorded_path
from mleredux._core.store.files import read_record, write_atomically
from mleredux._core.submissions.schema import is_current, write_schema
from mleredux.errors import DataError, NotApplicable, TaskBroken, file_errors, foreign_code
from mleredux.models import Task

DOWNLOAD_FOLDER = "download"
LEADERBOARD_FILE = "leaderboard.csv"
"""The file of a task's data with the public leaderboard."""
SPOILED_FILE = "spoiled"
"""Marker next to prepared files that an agent changed; they are prepared again before the next use."""
REFUSAL_FILE = "not-applicable.json"
"""The file of a task's data that states why a technique does not apply, as determined during preparation."""
OTHER_DATA_NOTE = (
    "The prepared files differ from the published ones (the raw data was different), so the score can't be compared."
)
_OURS = ".raw-fetched"
_NEUTRAL = "unpacked in neutral order\n"


@dataclass(frozen=True)
class _Raw:
    """A folder of raw data.

    Attributes:
        folder: The folder.
        ours: Whether mleredux created it.
        neutral: Whether its inodes are in neutral order.
    """

    folder: Path
    ours: bool = False
    neutral: bool = False


Preparer = Callable[[Task, Path, Path, Path], bool | None]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A task's prepared files.

    Attributes:
        public: The files that the agent may see.
        private: The answers.
        schema: The folder of the submission schema.
        digest: Identity of the prepared files (`tree_digest`).
        differences: Files that differ from the published ones, if the user provided different raw data.
        neutral: Whether inodes are in neutral order; False if another program or an earlier version prepared the files.
    """

    public: Path
    private: Path
    schema: Path
    digest: str
    differences: tuple[Difference, ...] = ()
    neutral: bool = False


class DataStore:
    """Raw and prepared data of tasks in one directory.

    Args:
        path: The directory; `default_data_dir()` if None. A relative path is resolved immediately.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = recorded_path(Path(path if path is not None else default_data_dir()))

    def raw(self, task: Task) -> Path:
        """Return the folder of the task's raw files. Variants share those of their base."""
        return self.path / (task.raw_id or task.id) / "raw"

    def home(self, task: Task) -> Path:
        """Return the folder of the task."""
        return self.path / task.id

    def leaderboard(self, task: Task) -> Path:
        """Return the path of the task's downloaded leaderboard."""
        return self.home(task) / LEADERBOARD_FILE

    def refusal(self, task: Task) -> str | None:
        """Return why a technique does not apply to the task's data, as determined during preparation, or None."""
        record = read_record(self.home(task) / REFUSAL_FILE, (FileNotFoundError,))
        return record.get("message") if record.get("task_version") == task.version else None

    def find(self, task: Task) -> Prepared | None:
        """Return the task's prepared files if they are complete and belong to its version, else None.

        A directory prepared by MLE-bench is recognized, checked and recorded. Files with published checksums are
        checked each time; unchanged files are not read again.

        Raises:
            DataError: The files are damaged, or belong to another version of the task.
        """
        prepared = self.home(task) / "prepared"
        parts = prepared / "public", prepared / "private"
        if not all(map(Path.is_dir, parts)) or (prepared / SPOILED_FILE).exists():
            return None
        known = self._record(task)
        record = known or self._adopt(task, prepared)
        about, again = f"The prepared data of {task.id} in {prepared}", f"`mleredux prepare {task.id} --force`"
        try:
            version, digest, rows = record["task_version"], record["digest"], record.get("differences", ())
            differing = tuple(Difference(row["file"], row["found"], row["published"]) for row in rows)
        except (KeyError, TypeError) as error:
            hint = f"Use that version, or prepare it again: {again}."
            raise DataError(f"{about} was prepared by another version of mleredux.", hint=hint) from error
        if version != task.version:
            message = f"{about} has version {version}, but the task has version {task.version}."
            raise DataError(message, hint=f"Prepare it again: {again}.")
        schema = Path(record["schema"])
        if not record.get("settled"):
            self._settle(prepared, record)
        if known:
            self._check_files(task, prepared, schema.parent, differing)
        if not is_current(schema):  # written by an older mleredux
            schema = schema if os.access(prepared, os.W_OK) else self._record_cache(task) / "schema"
            write_schema(task, prepared / "public", schema)
        return Prepared(*parts, schema, digest, differing, bool(record.get("neutral")))

    def prepare(
        self,
        task: Task,
        preparer: Preparer,
        *,
        force: bool = False,
        source: Path | None = None,
        keep_raw: bool = False,
        check_space: bool = True,
        progress: Progress = lambda _message: None,
    ) -> Prepared:
        """Prepare a task's files, unless they are prepared. Processes may call this concurrently: one does the work.

        Arguments and errors are those of `stages.prepare.prepare`, with one more argument.

        Args:
            preparer: Writes public and private files from raw files; returns whether it did.
        """
        home, raw_home = self.home(task), self.raw(task).parent
        source = find_source(source, task.raw_id or task.id)
        unwritable = f"The data directory {self.path} can't be written"
        with file_errors(DataError, unwritable, "Choose another with --data-dir."):
            home.mkdir(parents=True, exist_ok=True)
        with lock(home / ".lock"):
            if not force and (existing := self.find(task)):
                return existing
            if task.base is not None:
                base = self.prepare(
                    task.base, preparer, source=source, keep_raw=keep_raw, check_space=check_space, progress=progress
                )
                neutral = base.public if base.neutral else None
                self._prepare_from(task, preparer, base.public.parent, progress, provided=False, neutral=neutral)
                return self._require(task)
            if source is None or not source.is_dir():
                raw_home.mkdir(parents=True, exist_ok=True)
            # Variants share raw data: while one uses it, no other may download or remove it.
            with lock(raw_home / ".raw-lock"):
                if check_space:
                    from mleredux._core.data.space import check

                    check(self, [task], source=source, keep_raw=keep_raw)
                fetched = (raw_home / _OURS).exists()
                if force and source is None and fetched and not (home / "prepared").exists():
                    shutil.rmtree(self.raw(task), ignore_errors=True)
                raw = self._find_raw(task, source, keep_raw, progress)
                # The user's files may be deleted later, class by class, which would change the times of links to them.
                neutral = raw.folder if raw.neutral and not keep_raw else None
                provided = source is not None or not raw.ours
                self._prepare_from(task, preparer, raw.folder, progress, provided=provided, neutral=neutral)
                if raw.ours and not keep_raw:
                    shutil.rmtree(raw.folder, ignore_errors=True)
                if raw.ours:
                    (raw_home / _OURS).unlink(missing_ok=True)
        return self._require(task)

    def _require(self, task: Task) -> Prepared:
        if (prepared := self.find(task)) is None:
            raise DataError(f"The prepared data of {task.id} disappeared from {self.home(task)}.")
        return prepared

    def _prepare_from(
        self, task: Task, preparer: Preparer, raw: Path, progress: Progress, *, provided: bool, neutral: Path | None
    ) -> None:
        """Prepare the files of a task. If the user's raw data differs from the published data, this is recorded
        permanently.

        Args:
            provided: Whether the user provided the raw data.
            neutral: The folder below which all inodes are neutral; public files may be links to its files.
        """
        place = self.home(task) / "prepared"
        progress("splitting into public and private files")
        report("splitting into public and private files")
        with scratch_folder(place) as scratch:
            self._run_preparer(task, preparer, raw, scratch, neutral)
            progress("checking")
            report("checking")
            published = published_digests(task)
            for name in published:  # their checksums are cached by time
                settle_time(scratch / name)
            differing = differences(scratch, published, scratch / CHECKSUMS_FILE)
            if differing and not (provided and all(difference.found for difference in differing)):
                if not provided and task.base is None:
                    shutil.rmtree(raw, ignore_errors=True)
                again = "The raw data differs from the published data; preparing it again downloads it again."
                raise ChecksumMismatch(task.id, differing, hint=again)
            write_schema(task, scratch / "public", scratch / "schema")
            write_canary(scratch, task.id)
            self._write_record(task, scratch, schema=place / "schema", differing=differing, neutral=True)
            replace(scratch, place)
            (place.parent / REFUSAL_FILE).unlink(missing_ok=True)

    def _find_raw(self, task: Task, source: Path | None, keep: bool, progress: Progress) -> _Raw:
        if source is not None and source.is_dir():
            return _Raw(source)
        raw = self.raw(task)
        ours = raw.with_name(_OURS)
        if source is None and raw.is_dir() and any(raw.iterdir()):
            known = ours.exists()
            return _Raw(raw, known, known and ours.read_text(encoding="utf-8") == _NEUTRAL)
        packed = raw.with_name(f"{raw.parent.name}.zip")
        if source is None and packed.is_file():  # where MLE-bench stores it
            source = packed
        if source is not None and raw.exists() and not ours.exists() and not keep:
            raw = raw.with_name("raw-unpacked")  # a user's own raw data is not changed
        with scratch_folder(raw) as scratch:
            if source is not None:
                progress(f"unpacking {source.name}")
                unpack(source, scratch)
                unpack_inner(scratch, task.raw_id or task.id)
            else:
                if task.fetch is None:
                    raise self._missing_source(task)
                progress("downloading the raw data")
                task.fetch(scratch)
            replace(scratch, raw)
        neutral = source is not None or getattr(task.fetch, "neutral_order", False)
        if raw == self.raw(task):
            ours.write_text(_NEUTRAL if neutral else "", encoding="utf-8")
        shutil.rmtree(raw.with_name(DOWNLOAD_FOLDER), ignore_errors=True)
        return _Raw(raw, ours=True, neutral=neutral)

    def check_raw(self, task: Task) -> None:
        """Check before a run that a task is prepared, or that its raw data is available or can be downloaded.

        Raises:
            DataError: The data can't be downloaded; the message states what to do.
        """
        if task.base is not None:
            self.check_raw(task.base)
            return
        raw = self.raw(task)
        here = (self.home(task) / "prepared", raw, raw.with_name(f"{raw.parent.name}.zip"))
        if any(path.exists() for path in here):
            return
        if task.fetch is None:
            raise self._missing_source(task)
        if task.check_fetch is not None:
            task.check_fetch()

    def _missing_source(self, task: Task) -> DataError:
        return DataError(
            f"The raw data of {task.id} is not in {self.raw(task)}.",
            hint=f"Provide it with `mleredux prepare {task.id} --from FOLDER_OR_ZIP`.",
        )

    def _run_preparer(self, task: Task, preparer: Preparer, raw: Path, scratch: Path, neutral: Path | None) -> None:
        ordered = getattr(task.prepare, "neutral_order", False)
        hint = "Check its raw data; --debug prints the traceback."
        try:
            with foreign_code(TaskBroken, f"Preparing {task.id} failed", hint):
                done = _prepare_into(scratch, task, preparer, raw)
                if done and not (ordered and neutral):
                    linkable = inodes(neutral) if neutral else set[int]()
                    renew(scratch / "public", lambda file: file.st_ino in linkable if file.st_nlink > 1 else ordered)
        except NotApplicable as error:
            note = {"task_version": task.version, "message": error.message}
            write_atomically(self.home(task) / REFUSAL_FILE, json.dumps(note) + "\n")
            raise
        if not done:
            raise TaskBroken(f"No plugin can prepare {task.id}.", hint="Declare its `prepare` function.")

    def _record(self, task: Task) -> dict[str, Any] | None:
        for folder in (self.home(task) / "prepared", self._record_cache(task)):
            if record := read_record(folder / "prepared.json", (FileNotFoundError,)):
                return {**record, "schema": folder / "schema"}
        return None

    def _record_cache(self, task: Task) -> Path:
        """Return the path of the record for a prepared directory that is read-only."""
        return cache_dir() / "records" / hashlib.sha256(str(self.home(task).resolve()).encode()).hexdigest()[:16]

    def _check_files(self, task: Task, prepared: Path, records: Path, noted: Iterable[Difference]) -> None:
        """Reject files that are neither the published ones nor those recorded when they were prepared."""
        expected = published_digests(task) | {difference.file: difference.found or "" for difference in noted}
        if differing := differences(prepared, expected, records / CHECKSUMS_FILE):
            hint = f"They are incomplete or were changed; prepare them again: `mleredux prepare {task.id} --force`."
            raise ChecksumMismatch(f"{task.id} in {prepared}", differing, hint=hint)

    def _adopt(self, task: Task, prepared: Path) -> dict[str, Any]:
        folder = prepared if os.access(prepared, os.W_OK) else self._record_cache(task)
        folder.mkdir(parents=True, exist_ok=True)
        differing = differences(prepared, published_digests(task), folder / CHECKSUMS_FILE)
        self._check_files(task, prepared, folder, (difference for difference in differing if difference.found))
        write_schema(task, prepared / "public", folder / "schema")
        if folder == prepared:
            write_canary(prepared, task.id)
        return self._write_record(task, prepared, schema=folder / "schema", folder=folder, differing=differing)

    def _settle(self, prepared: Path, record: dict[str, Any]) -> None:
        """Set all times on first use, after the files were read and raw files that link to them were removed."""
        folder, kept = Path(record["schema"]).parent, {key: record[key] for key in record.keys() - {"schema"}}
        with contextlib.suppress(OSError):
            for part in ("public", "private"):
                settle_times(prepared / part, links=bool(record.get("neutral")))
            write_atomically(folder / "prepared.json", json.dumps({**kept, "settled": True}, indent=1) + "\n")

    def _write_record(
        self,
        task: Task,
        prepared: Path,
        *,
        schema: Path,
        folder: Path | None = None,
        differing: Iterable[Difference] = (),
        neutral: bool = False,
    ) -> dict[str, Any]:
        record = {
            "task": task.id,
            "task_version": task.version,
            "digest": tree_digest(prepared),
            "differences": [asdict(difference) for difference in differing],
            "neutral": neutral,
        }
        write_atomically((folder or prepared) / "prepared.json", json.dumps(record, indent=1) + "\n")
        return {**record, "schema": schema}


def _prepare_into(scratch: Path, task: Task, preparer: Preparer, raw: Path) -> bool | None:
    """Prepare a task from a raw folder, or from the only folder in it if the files are there."""
    for name, mode in (("public", 0o777), ("private", 0o700)):
        shutil.rmtree(scratch / name, ignore_errors=True)
        (scratch / name).mkdir(mode=mode)
    try:
        return preparer(task, raw, scratch / "public", scratch / "private")
    except DataError as error:
        if (inner := only_folder(raw)) is None:
            raise
        try:
            return _prepare_into(scratch, task, preparer, inner)
        except DataError:
            raise error from None
