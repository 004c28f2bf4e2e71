"""Prepared data: never half, never twice, never of another version, and those of MLE-bench used as they are."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.cli.root import main, root
from mleredux._core.data.datastore import DataStore
from mleredux._core.stages.failures import failure_of
from mleredux._core.stages.prepare import as_prepared, prepare
from mleredux.errors import DataError, MlereduxError, TaskBroken
from mleredux.models import Cause, Task


def prepared(toy: Any, task: Task | None = None, **more: Any) -> Any:
    return prepare(task or toy.task(), toy.catalogue, toy.data, **more)


def test_an_interrupted_preparation_is_never_mistaken_for_a_finished_one(toy: Any, until: Any) -> None:
    gate = toy.hold("preparing")
    code = "import sys; from mleredux._core.cli.root import main; sys.argv[0] = 'mleredux'; main()"
    program = subprocess.Popen(
        [
            *(sys.executable, "-c", code, "-p", str(Path(__file__).parent / "toy")),
            *("prepare", "toy", "--data-dir", str(toy.data.path)),
        ],
        env={**os.environ, "TOY_GATE": str(toy.gate)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: gate.with_name("preparing.reached").exists())
    assert toy.data.find(toy.task()) is None
    program.kill()
    program.wait()
    gate.unlink()
    assert toy.data.find(toy.task()) is None
    found = prepared(toy)
    assert {path.name for path in found.public.iterdir()} == {"train.csv", "test.csv", "sample_submission.csv"}
    assert not list((toy.data.path / "toy").glob(".making-*")), "what the killed program left is gone"


def test_preparing_that_fails_leaves_nothing_that_looks_prepared(toy: Any) -> None:
    def fails(raw: Path, public: Path, private: Path) -> None:
        (public / "train.csv").write_text("half")
        raise RuntimeError("no more")

    with pytest.raises(TaskBroken, match=r"Preparing toy failed \(RuntimeError: no more\)"):
        prepared(toy, toy.task().model_copy(update={"prepare": fails}))
    assert toy.data.find(toy.task()) is None


def test_who_asks_at_once_prepares_once(toy: Any) -> None:
    task, calls, found = toy.task(), list[str](), list[Any]()

    def slowly(raw: Path, public: Path, private: Path) -> None:
        calls.append("x")
        threading.Event().wait(0.3)
        task.prepare(raw, public, private)

    counted = task.model_copy(update={"prepare": slowly})
    threads = [threading.Thread(target=lambda: found.append(prepared(toy, counted))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert calls == ["x"] and len(found) == 4 and len({one.digest for one in found}) == 1


def test_data_of_another_version_are_refused_with_the_remedy(toy: Any) -> None:
    prepared(toy)
    newer = toy.task().model_copy(update={"version": "2"})
    with pytest.raises(DataError, match=r"has version 1, but the task has version 2\. Prepare it again: .*--force"):
        prepared(toy, newer)
    assert prepared(toy, newer, force=True).public.is_dir()


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"differences": 3}, True),
        ({"differences": {"a": 1}}, True),
        ({"differences": [{"file": "a"}]}, True),
        ({"differences": ["a"]}, True),
        ({"digest": ...}, True),
        ({"task_version": ...}, True),
        ({"new": 1}, False),
        (None, False),
    ],
    ids=str,
)
def test_a_record_of_another_version_of_mleredux_is_refused_in_a_sentence(
    toy: Any, changed: dict[str, Any] | None, refused: bool
) -> None:
    """One without a record is recorded again."""
    path = prepared(toy).public.parent / "prepared.json"
    record = json.loads(path.read_bytes()) | (changed or {})
    path.write_text(
        json.dumps({name: value for name, value in record.items() if value is not ...} if changed else None)
    )
    if refused:
        with pytest.raises(
            DataError, match=r"was prepared by another version of mleredux\. Use that version, or .*--force"
        ):
            toy.data.find(toy.task())
    else:
        assert toy.data.find(toy.task()) is not None


def _made_by_mle_bench(toy: Any) -> DataStore:
    """The same layout without any record of ours."""
    found = prepared(toy)
    store = DataStore(toy.home / "theirs")
    home = store.path / "toy" / "prepared"
    shutil.copytree(found.public, home / "public")
    shutil.copytree(found.private, home / "private")
    return store


def test_a_directory_that_mle_bench_prepared_is_used_as_it_is(toy: Any) -> None:
    store = _made_by_mle_bench(toy)
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*.csv")}
    found = store.find(toy.task())
    assert found is not None and found.digest == prepared(toy).digest
    assert json.loads((found.schema / "schema.json").read_text())["rows"] == 40
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_directory_that_may_not_be_written_is_used_too(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _made_by_mle_bench(toy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(toy.home / "cache"))
    listed = sorted(path.relative_to(store.path) for path in store.path.rglob("*"))
    for path in [*store.path.rglob("*"), store.path]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not (mode & os.W_OK))  # root may all
    found = prepare(toy.task(), toy.catalogue, store)
    assert found.schema.is_relative_to(toy.home / "cache")
    assert store.find(toy.task()).digest == found.digest
    assert sorted(path.relative_to(store.path) for path in store.path.rglob("*")) == listed


def _with_checksums(task: Task, found: Any) -> Task:
    sums = {
        part: {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for part, folder in (("public", found.public), ("private", found.private))
    }
    return task.model_copy(update={"checksums": sums})


def test_files_that_are_not_the_published_ones_are_named(toy: Any) -> None:
    task = _with_checksums(toy.task(), prepared(toy))
    store = _made_by_mle_bench(toy)
    assert store.find(task) is not None
    (store.path / "toy" / "prepared" / "private" / "answers.csv").write_text("id,y\n")
    (store.path / "toy" / "prepared" / "public" / "test.csv").unlink()
    with pytest.raises(DataError, match=r"private/answers\.csv") as caught:
        store.find(task)
    assert "public/test.csv" in str(caught.value)


def test_a_damaged_record_is_made_anew(toy: Any) -> None:
    found = prepared(toy)
    record = found.public.parent / "prepared.json"
    record.write_text("{")
    assert prepared(toy).digest == found.digest
    assert json.loads(record.read_text())["task_version"] == "1"


@pytest.mark.parametrize(
    "other",
    [
        {"form": 99},
        {"form": 1},
        {"form": "2b"},
        {"of_a_later_version": {"x": 1}},
        {"columns": [{"kind": "new"}]},
        {"task_version": None},
        "[",
        "",
    ],
)
def test_versions_that_write_other_schemas_share_a_data_folder(toy: Any, other: Any) -> None:
    found = prepared(toy)
    path = found.schema / "schema.json"
    own = json.loads(path.read_text())
    path.write_text(json.dumps({**own, **other}) if isinstance(other, dict) else other)
    record = found.public.parent / "prepared.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "of_a_later_version": [1]}))
    again = toy.data.find(toy.task())
    assert again is not None and again.digest == found.digest
    assert json.loads((again.schema / "schema.json").read_text()) == own
    assert json.loads(record.read_text())["of_a_later_version"] == [1], "what others noted is kept"


def test_raw_data_that_are_absent_are_asked_for(toy: Any) -> None:
    with pytest.raises(DataError, match="--from FOLDER_OR_ZIP"):
        prepared(toy, toy.task().model_copy(update={"fetch": None}))


def test_a_data_directory_that_can_not_be_made_is_a_sentence(toy: Any) -> None:
    (toy.home / "file").write_text("")
    with pytest.raises(MlereduxError, match=r"--data-dir"):
        prepare(toy.task(), toy.catalogue, DataStore(toy.home / "file" / "data"))


def test_other_raw_data_of_the_users_are_prepared_and_every_report_says_so(toy: Any, tmp_path: Path) -> None:
    first = prepared(toy)
    task = _with_checksums(toy.task(), first)
    raw = tmp_path / "raw"
    raw.mkdir()
    task.fetch(raw)
    for path in raw.iterdir():
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-4]))
    store = DataStore(tmp_path / "other")
    found = prepare(task, toy.catalogue, store, source=raw)
    assert found.differences
    assert all(difference.found for difference in found.differences)
    assert store.find(task).differences == found.differences, "recorded permanently"
    note = as_prepared(task, found.public.parent).note
    assert note is not None
    assert "differ from the published ones" in note
    (found.private / "answers.csv").write_text("id,y\n")
    with pytest.raises(DataError, match=r"private/answers\.csv"):
        store.find(task)


@pytest.mark.parametrize("how", ["checksums", "a missing file"])
def test_bad_raw_data_that_was_downloaded_is_downloaded_again(toy: Any, how: str) -> None:
    downloads = []

    def fetch(raw: Path) -> None:
        downloads.append(raw)
        (raw / "rows.csv").write_text("bad" if len(downloads) == 1 else "good")

    def split(raw: Path, public: Path, private: Path) -> None:
        text = (raw / "rows.csv").read_text()
        if text == "bad" and how == "a missing file":
            raise DataError("The raw data has no table.")
        (public / "sample_submission.csv").write_text("id,y\n1,0\n")
        (public / "rows.csv").write_text(text)
        (private / "answers.csv").write_text("id,y\n1,0\n")

    sums = {"public": {"rows.csv": hashlib.md5(b"good").hexdigest()}} if how == "checksums" else {}
    task = toy.task().model_copy(update={"prepare": split, "fetch": fetch, "checksums": sums})
    with pytest.raises(DataError):
        prepared(toy, task)
    if how == "a missing file":
        with pytest.raises(DataError):
            prepared(toy, task)
        assert len(downloads) == 1, "code may be at fault: nothing is downloaded again unless --force"
    assert prepared(toy, task, force=how == "a missing file").public.is_dir()
    assert len(downloads) == 2


def full_disk(kind: str) -> None:
    """Raise what really happens on a full device, as libraries pass it on."""
    try:
        with Path("/dev/full").open("w") as file:
            file.write("x" * 10)
    except OSError as error:
        if kind == "as it is":
            raise
        if kind == "wrapped":
            raise TaskBroken("Preparing failed.") from error
        if kind == "while handling":
            raise ValueError("the table is cut off")  # noqa: B904 – as libraries do
        if kind == "as text":
            raise RuntimeError(f"HDF5 error: {error.strerror}") from None
        raise sqlite3.OperationalError("database or disk is full") from None


@pytest.mark.parametrize("kind", ["as it is", "wrapped", "while handling", "as text", "database"])
def test_a_full_disk_is_one_sentence_everywhere(toy: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.catalogue, "hook", lambda _name: lambda **_arguments: full_disk(kind))
    with pytest.raises(DataError, match=r"^The disk.* is full \(No space left on device\)\. Free some space") as caught:
        prepare(toy.catalogue.task("toy"), toy.catalogue, toy.data)
    failure = failure_of(caught.value)
    assert failure.cause is Cause.ENVIRONMENT_BROKE and failure.message == str(caught.value)
    try:
        full_disk(kind)
    except Exception as error:
        assert failure_of(error).cause is Cause.ENVIRONMENT_BROKE
        monkeypatch.setattr(sys, "argv", ["mleredux", "list"])
        monkeypatch.setattr(root, "main", lambda **_how: full_disk(kind))
        with pytest.raises(SystemExit, match="1"):
            main()
