"""`mleredux prepare` as a user runs it: from Kaggle, interrupted, onto full disks, over data that are there already."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux._core.data import checksums, space
from mleredux._core.data import datastore as data_module
from mleredux._core.data.checksums import ChecksumMismatch
from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux.errors import DataError
from mleredux.models import Task

sys.path.insert(0, str(Path(__file__).parent))
from fake_kaggle import TOKEN, FakeKaggle

TASK = "spaceship-titanic"
pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def archive(shared: Path) -> Path:
    return shared / "data" / "kaggle" / TASK / f"{TASK}.zip"


@pytest.fixture
def kaggle(archive: Path) -> Iterator[FakeKaggle]:
    with FakeKaggle({TASK: archive.read_bytes()}) as fake:
        yield fake


@pytest.fixture
def env(kaggle: FakeKaggle, tmp_path: Path, own_cache: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KAGGLE_", "MLEREDUX_", "XDG_"))}
    own = {"HOME": str(home), "KAGGLE_API_TOKEN": TOKEN, "MLEREDUX_KAGGLE_ENDPOINT": kaggle.endpoint}
    return {**kept, **own, "MLEREDUX_DATA_ROOT": str(tmp_path / "data"), "XDG_CACHE_HOME": str(own_cache.parent)}


@pytest.fixture
def store(tmp_path: Path) -> DataStore:
    return DataStore(tmp_path / "data")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


@pytest.fixture(scope="module")
def task(catalogue: Catalogue) -> Task:
    return catalogue.task(TASK)


def start(env: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("mleredux")), "prepare", *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    process = start(env, *arguments)
    out, err = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def published(task: Task, home: Path) -> bool:
    found = {
        side: {name: hashlib.md5((home / "prepared" / side / name).read_bytes()).hexdigest() for name in files}
        for side, files in task.checksums.items()
    }
    return bool(found) and found == task.checksums


@pytest.mark.slow
def test_from_kaggle_to_the_published_bytes(
    env: dict[str, str], kaggle: FakeKaggle, task: Task, store: DataStore
) -> None:
    kaggle.boards[TASK] = (["0.9", "0.8", "0.7", "0.6"], [])
    kaggle.trouble.cut_after.append(100_000)
    done = run(env, TASK, "--leaderboard", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["task"], row["ok"]) == (TASK, True)
    assert done.stderr == ""
    assert published(task, store.home(task))
    left = {path.name for path in store.home(task).iterdir()} - {".lock", ".raw-lock"}
    assert left == {"prepared", "leaderboard.csv"}, "raw data and downloads went"

    fresh = Path(row["leaderboard"])
    assert fresh.read_text() == "rank,score\n1,0.9\n2,0.8\n3,0.7\n4,0.6\n"
    report = mleredux.grade(Path(row["public"]) / "sample_submission.csv", TASK, data_dir=store.path)
    assert report.teams == 4, "percentiles refer to the fresh leaderboard"
    assert report.gold_threshold == task.thresholds.gold, "medals do not"

    again = run(env, TASK)
    assert again.returncode == 0
    assert again.stdout == ""
    assert again.stderr == f"{TASK}: ready in {store.home(task)}/prepared\n"
    for output in (done.stdout, done.stderr, again.stderr):
        assert TOKEN not in output
        assert "Signature" not in output


@pytest.mark.slow
def test_a_refusal_ends_one_task_and_not_the_others(env: dict[str, str], kaggle: FakeKaggle) -> None:
    kaggle.unaccepted.add(TASK)
    done = run(env, TASK, "digits", "--jobs", "2", "--json")
    assert done.returncode == 1
    refused, prepared = json.loads(done.stdout)
    assert not refused["ok"]
    assert f"https://www.kaggle.com/c/{TASK}/rules" in refused["message"]
    assert prepared["ok"]
    assert done.stderr == f"{TASK}: Error: {refused['message']}\n"


@pytest.mark.slow
def test_killed_while_downloading_it_goes_on_from_there(
    env: dict[str, str], kaggle: FakeKaggle, task: Task, store: DataStore
) -> None:
    kaggle.bytes_per_second = 100_000
    part = store.home(task) / "download" / f"{TASK}.zip.part"
    process = start(env, TASK)
    wait_for(lambda: part.exists() and part.stat().st_size > 50_000, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kaggle.bytes_per_second = 0
    time.sleep(0.5)
    had = part.stat().st_size
    time.sleep(1)
    assert part.stat().st_size == had, "the process that downloaded ended with its parent"
    assert store.find(task) is None
    assert not store.raw(task).exists()

    done = run(env, TASK, "--keep-raw")
    assert done.returncode == 0, done.stderr
    assert published(task, store.home(task))
    assert f"bytes={had}-" in [headers.get("Range") for _, _, headers, _ in kaggle.requests]
    assert (store.raw(task) / "train.csv").exists(), "--keep-raw"


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_stops_at_once_and_keeps_what_came(
    env: dict[str, str], kaggle: FakeKaggle, task: Task, store: DataStore, jobs: str
) -> None:
    kaggle.bytes_per_second = 20_000
    part = store.home(task) / "download" / f"{TASK}.zip.part"
    process = start(env, TASK, "digits", "--jobs", jobs)
    wait_for(lambda: part.exists() and part.stat().st_size > 10_000, process)
    since = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert time.monotonic() - since < 10
    assert errors.endswith("Stopped.\n")
    assert "Traceback" not in errors
    assert part.stat().st_size > 10_000
    assert {path.name for path in store.home(task).iterdir()} == {".lock", ".raw-lock", "download"}


PLUGIN = """
from pathlib import Path
import time
from mleredux.hookspecs import hookimpl
from mleredux.models import Metric, Submission, Task

HERE = Path(__file__).parent

def fetch(raw):
    with (HERE / "fetched").open("a") as file:
        file.write("x")
    (raw / "all.csv").write_text("id,y\\n1,2\\n")

def prepare(raw, public, private):
    (public / "sample_submission.csv").write_text("id,y\\n")
    while (HERE / "hold").exists():
        time.sleep(0.02)
    (public / "sample_submission.csv").write_text("id,y\\n1,0\\n")
    (private / "answers.csv").write_text((raw / "all.csv").read_text())

@hookimpl
def mleredux_register_tasks():
    return [
        Task(id="slow", title="Slow", description=HERE / "d.md", fetch=fetch, prepare=prepare, direction="maximize",
             metric=Metric(grader="accuracy"), submission=Submission(id_columns=("id",)))
    ]
"""


def test_killed_while_preparing_no_half_is_taken_for_whole(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "slow_plugin.py").write_text(PLUGIN)
    (folder / "hold").touch()
    env = {**env, "MLEREDUX_PLUGINS": str(folder / "slow_plugin.py")}
    home = tmp_path / "data" / "slow"
    process = start(env, "slow")
    wait_for(lambda: list(home.glob(".making-prepared-*/public/sample_submission.csv")), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (home / "prepared").exists()
    assert (home / "raw" / "all.csv").exists()

    (folder / "hold").unlink()
    done = run(env, "slow")
    assert done.returncode == 0, done.stderr
    assert (home / "prepared" / "public" / "sample_submission.csv").read_text() == "id,y\n1,0\n"
    assert (folder / "fetched").read_text() == "x", "the raw data was not fetched again"
    assert {path.name for path in home.iterdir()} == {".lock", ".raw-lock", "prepared"}, "and went in the end"


@pytest.fixture
def by_mlebench(task: Task, catalogue: Catalogue, archive: Path, tmp_path: Path, store: DataStore) -> Path:
    """A prepared directory as MLE-bench leaves it: two folders, no record of ours."""
    made = prepare(task, catalogue, DataStore(tmp_path / "elsewhere"), source=archive)
    place = store.home(task) / "prepared"
    shutil.copytree(made.public, place / "public")
    shutil.copytree(made.private, place / "private")
    return place


def test_data_prepared_by_mlebench_are_used_as_they_are(
    by_mlebench: Path, task: Task, catalogue: Catalogue, store: DataStore
) -> None:
    before = {path: path.stat().st_mtime_ns for path in by_mlebench.rglob("*.csv")}
    found = prepare(task, catalogue, store)
    assert found.public == by_mlebench / "public"
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (found.schema / "schema.json").exists()


def test_data_that_may_not_be_written_are_left_untouched(
    by_mlebench: Path,
    task: Task,
    catalogue: Catalogue,
    store: DataStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(data_module.os, "access", lambda path, mode: False)
    before = sorted(store.path.rglob("*"))
    found = prepare(task, catalogue, store)
    assert sorted(store.path.rglob("*")) == before
    assert found.schema.is_relative_to(tmp_path / "cache")
    monkeypatch.setattr(checksums, "md5s", lambda paths: pytest.fail("nothing is hashed twice") if list(paths) else {})
    assert prepare(task, catalogue, store).digest == found.digest


def test_half_prepared_data_of_others_are_not_taken_for_whole(
    by_mlebench: Path, task: Task, catalogue: Catalogue, store: DataStore
) -> None:
    (by_mlebench / "private" / "test.csv").unlink()
    with pytest.raises(ChecksumMismatch, match=r"private/test\.csv is missing.*--force"):
        prepare(task, catalogue, store)


def test_a_changed_file_is_reported_with_both_checksums(
    task: Task, catalogue: Catalogue, store: DataStore, archive: Path, env: dict[str, str]
) -> None:
    found = prepare(task, catalogue, store, source=archive)
    path = found.public / "train.csv"
    path.write_text(path.read_text().replace("True", "true"))
    done = run(env, TASK, "--json")
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert row["differences"] == [
        {
            "file": "public/train.csv",
            "found": hashlib.md5(path.read_bytes()).hexdigest(),
            "published": task.checksums["public"]["train.csv"],
        }
    ]
    corrected = run(env, TASK, "--force", "--from", str(archive), "--json")
    assert corrected.returncode == 0, corrected.stderr
    assert published(task, store.home(task))


def test_an_unchanged_file_is_not_read_again(
    task: Task, catalogue: Catalogue, store: DataStore, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = prepare(task, catalogue, store, source=archive)
    hashed: list[Path] = []
    real = checksums.md5s
    monkeypatch.setattr(checksums, "md5s", lambda paths: real([hashed.append(path) or path for path in paths]))
    store.find(task)
    assert hashed == []
    (found.public / "test.csv").touch()
    store.find(task)
    assert hashed == [found.public / "test.csv"], "only the one with another time"
    hashed.clear()
    store.find(task)
    assert hashed == []


def test_a_disk_too_small_is_told_before_anything_is_written(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, task = DataStore(tmp_path / "data"), catalogue.task("champs-scalar-coupling")
    assert task.resources.size_gb is not None
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(space.shutil, "disk_usage", lambda path: usage._replace(free=10**8))
    monkeypatch.setattr(space, "_links_work", lambda place: False)
    needed = 2.5 * task.resources.size_gb
    with pytest.raises(DataError, match=rf"needs about {needed:.1f} GB .* GB more is needed.*--data-dir") as error:
        prepare(task, catalogue, store)
    assert f"{needed - 0.1 + 1e-9:.1f} GB more is needed" in str(error.value)
    assert not store.raw(task).exists()
    assert not (store.home(task) / "download").exists()


def test_room_is_counted_for_all_tasks_together(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [catalogue.task("champs-scalar-coupling"), catalogue.task("ventilator-pressure-prediction")]
    sizes = [task.resources.size_gb or 0 for task in tasks]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(space, "_links_work", lambda place: False)
    for jobs, needed in ((1, sum(sizes) + 1.5 * max(sizes)), (2, 2.5 * sum(sizes))):
        monkeypatch.setattr(space.shutil, "disk_usage", lambda path, n=needed: usage._replace(free=int(n * 1e9) + 1))
        space.check(DataStore(tmp_path), tasks, jobs=jobs)
        monkeypatch.setattr(space.shutil, "disk_usage", lambda path, n=needed: usage._replace(free=int(n * 1e9) - 1))
        with pytest.raises(DataError, match="Preparing 2 tasks needs about"):
            space.check(DataStore(tmp_path), tasks, jobs=jobs)


def test_a_truncated_zip_is_one_sentence_and_leaves_nothing(
    env: dict[str, str], archive: Path, tmp_path: Path, store: DataStore, task: Task
) -> None:
    (tmp_path / "half.zip").write_bytes(archive.read_bytes()[:150_000])
    done = run(env, TASK, "--from", str(tmp_path / "half.zip"))
    assert done.returncode == 1
    assert "truncated or corrupt" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in store.home(task).iterdir()} <= {".lock", ".raw-lock"}


def test_somebodys_own_raw_data_stay(
    task: Task, catalogue: Catalogue, store: DataStore, archive: Path, tmp_path: Path
) -> None:
    shutil.unpack_archive(archive, store.raw(task))
    prepare(task, catalogue, store)
    assert (store.raw(task) / "train.csv").exists()
    prepare(task, catalogue, store, source=archive, force=True)
    assert (store.raw(task) / "train.csv").exists()
    assert published(task, store.home(task))
    assert not store.raw(task).with_name("raw-unpacked").exists()


def test_the_archive_is_found_where_mlebench_keeps_it(
    task: Task, catalogue: Catalogue, store: DataStore, archive: Path
) -> None:
    store.home(task).mkdir(parents=True)
    shutil.copy(archive, store.home(task) / f"{TASK}.zip")
    prepare(task, catalogue, store)
    assert published(task, store.home(task))
    assert (store.home(task) / f"{TASK}.zip").exists()


def test_a_relative_data_directory_is_that_of_the_working_directory(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are hard links of the raw ones, which are made from the root of the file system."""
    monkeypatch.chdir(tmp_path)
    insults = "detecting-insults-in-social-commentary"
    source = shared / "data" / "kaggle" / insults / f"{insults}.zip"
    done = prepare(Catalogue().task(insults), Catalogue(), DataStore("data"), source=source)
    assert done.public == tmp_path / "data" / insults / "prepared" / "public" and (done.public / "train.csv").is_file()
    report = mleredux.grade(done.public / "sample_submission_null.csv", insults, data_dir="data")
    assert report.score == 0.5
