"""Runs on disk: directories are the truth, the index a cache, states follow the machine, one program writes."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from mleredux._core.store import Run, RunStore
from mleredux._core.store.files import FileLock, write_atomically, write_once
from mleredux._core.store.run import INTERRUPTED
from mleredux._core.store.sparse import remove_tree
from mleredux._core.store.states import STAGES, TRANSITIONS
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import Cause, Limits, RunPlan, State

PLAN = RunPlan(task="toy", agent="copy", sandbox="process", seed=0, limits=Limits())
NOWHERE = "/nowhere"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


class RunMachine(RuleBasedStateMachine):
    """A run goes only where the machine lets it, and disk, memory and index always agree."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = RunStore(Path(self.folder.name) / "runs")
        self.run_ = self.store.create(PLAN, NOWHERE)
        self.state = State.QUEUED
        self.path = [State.QUEUED]

    @rule(state=st.sampled_from(State))
    def enter(self, state: State) -> None:
        if state in TRANSITIONS[self.state]:
            self.run_.enter(state)
            self.state = state
            self.path.append(state)
        else:
            with pytest.raises(MlereduxError, match="can't change from"):
                self.run_.enter(state)

    @rule()
    def read_again(self) -> None:
        self.run_ = self.store.get(self.run_.id)

    @rule(bytes_=st.binary(min_size=1, max_size=30).filter(lambda tail: b"\n" not in tail))
    def crash_while_writing(self, bytes_: bytes) -> None:
        with (self.run_.path / "events.jsonl").open("ab") as file:
            file.write(bytes_)
        self.run_ = self.store.get(self.run_.id)

    @precondition(lambda self: len(self.path) > 1)
    @rule()
    def lose_the_index(self) -> None:
        (self.store.path / "index.sqlite").unlink(missing_ok=True)

    @rule()
    def spoil_the_index(self) -> None:
        (self.store.path / "index.sqlite").write_bytes(b"this is no database, whatever its name says" * 30)

    @invariant()
    def all_agree(self) -> None:
        assert self.run_.state == self.state
        states = [State(event.data["state"]) for event in self.run_.events() if event.type == "state"]
        assert states == self.path
        (row,) = self.store.rows()
        dead = self.state in STAGES  # nobody works on it
        assert row["status"] == self.run_.status == (INTERRUPTED if dead else self.state)

    def teardown(self) -> None:
        self.folder.cleanup()


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


def test_every_end_can_be_reached_and_only_unfinished_runs_go_on() -> None:
    assert all(TRANSITIONS[state] for state in State if not state.final)
    assert not TRANSITIONS[State.DONE] and not TRANSITIONS[State.TIMED_OUT]
    assert all(State.QUEUED in TRANSITIONS[state] for state in (State.FAILED, State.CANCELLED))
    assert TRANSITIONS[State.QUEUED] >= set(STAGES), "queued again, a run goes on with the stage it was in"
    for stage in STAGES:
        assert stage in TRANSITIONS[stage], "an interrupted stage is entered again"
        assert State.PRODUCING in TRANSITIONS[stage], "whatever fails, artifacts are kept"


def test_a_run_killed_before_its_first_event_is_queued(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    (run.path / "events.jsonl").unlink()
    assert store.get(run.id).state is State.QUEUED
    assert store.rows()[0]["status"] == "queued"


def test_the_index_sees_what_a_killed_program_could_not_tell_it(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    assert store.rows()[0]["status"] == "queued"
    Run(run.path).enter(State.PREPARING)  # nobody watches this one
    assert store.rows()[0]["status"] == INTERRUPTED
    with run.lock:
        assert store.rows()[0]["status"] == "preparing"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: path.write_bytes(b"nonsense" * 1000), id="no database"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:4096]), id="cut"),
        pytest.param(lambda path: sqlite3.connect(path).executescript("DROP TABLE runs"), id="no table"),
        pytest.param(
            lambda path: sqlite3.connect(path).executescript("DROP TABLE runs; CREATE TABLE runs (id TEXT)"),
            id="of another version",
        ),
        pytest.param(lambda path: sqlite3.connect(path).executescript("DELETE FROM runs"), id="emptied"),
        pytest.param(
            lambda path: sqlite3.connect(path).executescript("INSERT INTO runs (id) VALUES ('ghost')"), id="a ghost"
        ),
    ],
)
def test_the_index_is_rebuilt_from_the_directories(store: RunStore, spoil: Any) -> None:
    made = [store.create(PLAN, NOWHERE).id for _ in range(3)]
    spoil(store.path / "index.sqlite")
    assert sorted(row["id"] for row in store.rows()) == sorted(made)
    assert store.rebuild() == 3


def test_one_damaged_run_does_not_hide_the_others(store: RunStore) -> None:
    good = store.create(PLAN, NOWHERE)
    for content in (
        "{",
        "{}",
        "[]",
        '{"spec": 1, "use": {}}',
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ):
        bad = store.create(PLAN, NOWHERE)
        (bad.path / "run.json").write_text(content)
        with pytest.raises(MlereduxError, match=r"run\.json is damaged"):
            store.get(bad.id)
    scribbled = store.create(PLAN, NOWHERE)
    (scribbled.path / "events.jsonl").write_bytes(b"scribble\n")
    store.rebuild()
    status = {row["id"]: row["status"] for row in store.rows()}
    assert status.pop(good.id) == "queued"
    assert set(status.values()) == {"damaged"} and len(status) == 6


def test_runs_are_found_by_part_of_their_id_and_never_guessed(store: RunStore) -> None:
    first, second = (
        store.create(PLAN, NOWHERE),
        store.create(PLAN.model_copy(update={"task": "other/../../task"}), NOWHERE),
    )
    assert second.path.parent == store.path, "a task's name is no path"
    assert store.get(first.id[-6:]).id == first.id
    assert store.get(str(first.path)).id == first.id
    assert store.get("last").id == second.id
    with pytest.raises(NotFound, match="2 runs match"):
        store.get("copy")
    with pytest.raises(NotFound, match="no run"):
        store.get("nothing-like-it")


def test_the_last_run_is_the_newest_of_those_of_one_second(store: RunStore) -> None:
    for _ in range(12):
        newest = store.create(PLAN, NOWHERE)
        assert store.get("last").id == newest.id


def test_the_newest_runs_of_a_task_are_read_one_by_one(store: RunStore) -> None:
    assert list(store.newest("digits")) == []
    for number, task in enumerate(("digits", "iris", "digits", "digits-2", "imbalance@digits", "digits")):
        name = store.new_id(task, "copy")
        plan = PLAN.model_copy(update={"task": task})
        store.create(plan, NOWHERE, f"20260101-00000{number}{name[15:]}")
    (store.path / "20260101-000009-digits-torn-abcdef").mkdir()
    assert [run.id[:15] for run in store.newest("digits")] == [f"20260101-00000{number}" for number in (5, 2, 0)]
    assert [run.id[:15] for run in store.newest("imbalance@digits")] == ["20260101-000004"]
    assert list(store.newest("nothing")) == []


def test_a_run_somebody_works_on_is_alive_and_not_deleted(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    holder = Run(run.path)
    assert holder.lock.acquire()
    assert run.alive
    assert not run.lock.acquire()
    with pytest.raises(MlereduxError, match="is being executed"):
        store.delete(run)
    holder.lock.release()
    assert not run.alive
    store.delete(run)
    assert not run.path.exists() and store.rows() == []


_HOLD = """
import sys, time
from pathlib import Path
from mleredux._core.store.files import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
time.sleep(600)
"""

_ADD = """
import sys
from mleredux.models import RunPlan, State
from mleredux._core.store import RunStore
store = RunStore(sys.argv[1])
for _ in range(6):
    store.create(RunPlan.model_validate_json(sys.argv[2]), "/nowhere").enter(State.PREPARING)
"""


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path / "lock")], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    lock = FileLock(tmp_path / "lock")
    assert lock.held_elsewhere() and not lock.acquire()
    process.kill()
    process.communicate()
    assert not lock.held_elsewhere() and lock.acquire()
    lock.release()


def test_concurrent_writers_and_rebuilders_lose_nothing(store: RunStore) -> None:
    asked = PLAN.model_dump_json()
    processes = [subprocess.Popen([sys.executable, "-c", _ADD, str(store.path), asked]) for _ in range(3)]
    while any(process.poll() is None for process in processes):
        store.rebuild()
        store.rows()
        time.sleep(0.1)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert {row["status"] for row in store.rows()} == {"interrupted"}, "this reads open runs again"
    with sqlite3.connect(store.path / "index.sqlite") as database:
        rows = database.execute("SELECT id, status FROM runs").fetchall()
    assert len(rows) == 18 and {status for _, status in rows} == {"preparing"}


def test_of_processes_that_need_a_secret_file_the_first_creates_it_and_only_its_user_reads_it(tmp_path: Path) -> None:
    path, start = tmp_path / "new" / "secret", threading.Barrier(8)

    def content(number: int) -> bytes:
        start.wait(60)  # all have seen that there is no file
        return str(number).encode()

    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(lambda number: write_once(path, lambda: content(number)), range(8)))
    assert seen == {path.read_bytes()} and list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
    assert write_once(path, lambda: b"another") in seen


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ("n" * 255)
    write_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", lambda _descriptor: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == [path.name]


def test_a_record_is_json_and_says_what_scripts_rely_on(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    record = json.loads(json.dumps(run.record()))
    assert {"id", "task", "agent", "seed", "status", "cause", "report", "path"} <= set(record)
    assert run.spec.created_at <= datetime.now(UTC)


def test_causes_say_whether_they_count_and_are_retried() -> None:
    from mleredux.models import CAUSES

    assert set(CAUSES) == set(Cause)
    assert not any(policy.retried and policy.counts for policy in CAUSES.values())


def test_a_tree_of_any_depth_and_any_names_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    here = os.open(root, os.O_RDONLY)
    for level in range(1500):
        os.mkdir("d", dir_fd=here)
        if level % 100 == 0:
            os.symlink(outside, "link", dir_fd=here)
            os.mkfifo(b"\xff\n", dir_fd=here)
            os.mkdir("closed", 0o000, dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert remove_tree(root)
    assert not root.exists() and (outside / "kept").exists()
    os.symlink(outside, tmp_path / "to-outside")
    assert not remove_tree(tmp_path / "to-outside") and (outside / "kept").exists()
    assert remove_tree(tmp_path / "never-was")


DOCUMENTS = {
    "run.json": ("{", "{}", "[]", '{"spec": 1}', "", "\0" * 100),
    "report.json": ("{", "[]", "null", '{"score": "\\ud800"', ""),
    "rollout.json": ("{", "[]", "7"),
    "artifacts.json": ("{", "{}", "[1]"),
    "scores.json": ("{", "7", "[1]"),
    "events.jsonl": ("scribble\n", "[" * 100_000 + "\n", "[]\n", '{"seq": 0}\n', "\0\n"),
}


@pytest.mark.parametrize(("name", "content"), [(name, text) for name, all_ in DOCUMENTS.items() for text in all_])
def test_a_damaged_document_costs_the_view_of_its_run_and_no_more(store: RunStore, name: str, content: str) -> None:
    good, bad = store.create(PLAN, NOWHERE), store.create(PLAN, NOWHERE)
    (bad.path / name).write_text(content)
    views = ("report", "rollout", "manifest", "scores", "state")
    with pytest.raises(MlereduxError, match=f"{re.escape(name)} is damaged"):
        reopened = store.get(bad.id)
        for view in views:
            getattr(reopened, view)
    store.rebuild()
    assert {row["id"] for row in store.rows()} == {good.id, bad.id}
    assert next(row for row in store.rows() if row["id"] == good.id)["status"] == "queued"
    store.delete(store.locate(bad.id))
    assert list(store.ids()) == [good.id] and [row["id"] for row in store.rows()] == [good.id]


@pytest.mark.parametrize("odd", ["\ufeff", "NaN", "Infinity", '"\\ud800"', '"\\udfff\\u0000"', "-Infinity"])
def test_one_odd_value_spoils_no_more_than_itself(store: RunStore, odd: str) -> None:
    run = store.create(PLAN.model_copy(update={"options": {"odd": "VALUE"}}), NOWHERE)
    text = (run.path / "run.json").read_text()
    changed = odd + text if odd == "\ufeff" else text.replace('"VALUE"', odd)
    (run.path / "run.json").write_text(changed)
    again = store.get(run.id)
    assert again.spec.model_copy(update={"options": {}}) == run.spec.model_copy(update={"options": {}})
    assert json.dumps(again.record(), allow_nan=False).encode() and again.spec.model_dump_json()


@pytest.mark.parametrize("how", ["copied", "renamed", "linked", "a link elsewhere"])
def test_a_run_under_another_name_is_refused_and_deleting_it_deletes_nothing_else(
    store: RunStore, how: str, tmp_path: Path
) -> None:
    run, other = store.create(PLAN, NOWHERE), store.path / "other"
    if how == "copied":
        shutil.copytree(run.path, other)
    elif how == "renamed":
        run.path.rename(other)
    else:
        target = tmp_path / run.id if how == "a link elsewhere" else run.path
        if target != run.path:
            run.path.rename(target)
        other.symlink_to(target)
    for name in ("other", str(other)):
        with pytest.raises(MlereduxError, match="copies are not runs"):
            store.get(name)
    before = {path for path in store.path.iterdir() if path.is_dir() and path != other}
    assert {row["id"]: row["status"] for row in store.rows()}["other"] == "damaged"
    store.delete(store.locate("other"))
    assert not other.exists() and before == {path for path in store.path.iterdir() if path.is_dir()}
    assert [row["id"] for row in store.rows()] == [path.name for path in before]
    assert how != "a link elsewhere" or (tmp_path / run.id / "run.json").is_file()


def test_a_folder_without_a_run_is_never_deleted(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(NotFound, match="There is no run in"):
        store.locate(str(tmp_path / "mine"))
