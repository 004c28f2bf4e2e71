"""Run directories received from another user: whatever they contain, reading ends and stays within them."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.sandboxes.timeline import read_timeline
from mleredux._core.store import RunStore
from mleredux.errors import MlereduxError
from mleredux.models import Limits, RunPlan
from mleredux.models.events import SubmissionKept

PLAN = RunPlan(task="toy", agent="copy", sandbox="process", seed=0, limits=Limits())
NOWHERE = "/nowhere"
DOCUMENTS = ("run.json", "report.json", "rollout.json", "artifacts.json", "scores.json", "events.jsonl")


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a link to another file": lambda path: path.symlink_to(path.parent.with_name("secret")),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a pipe": os.mkfifo,
    "a socket": lambda path: os.mknod(path, 0o600 | stat.S_IFSOCK),
    "a folder": Path.mkdir,
    "a file of a terabyte": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
}


OTHERS = ("logs/agent.log", "submissions/0001.csv", "logs", "submissions", ".lock")
NOT_READ = ("a folder", "a file of a terabyte")
"""Kinds that are a problem only in place of a document."""


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind in IRREGULAR for name in (*DOCUMENTS, *OTHERS * (kind not in NOT_READ))]
)
@pytest.mark.attack
def test_a_run_of_someone_else_is_read_without_waiting_and_without_other_files(
    store: RunStore, name: str, kind: str
) -> None:
    good, bad = store.create(PLAN, NOWHERE), store.create(PLAN, NOWHERE)
    (store.path / "secret").write_text((bad.path / "run.json").read_text())
    path = bad.path / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    IRREGULAR[kind](path)
    with pytest.raises(MlereduxError, match=f"{re.escape(name)} (is|can't be read)") as error:
        reopened = store.get(bad.id)
        for view in ("report", "rollout", "manifest", "scores", "state"):
            getattr(reopened, view)
    assert error.value.hint == "Restore it, or delete the run."
    assert {row["id"] for row in store.rows()} == {good.id, bad.id} and store.rebuild() == 2
    store.delete(store.locate(bad.id))
    assert list(store.ids()) == [good.id]


@pytest.mark.parametrize("kind", [kind for kind in IRREGULAR if kind not in NOT_READ])
@pytest.mark.parametrize("folder", [".", "logs", "submissions"])
def test_lists_show_at_once_that_a_run_is_refused_and_that_it_no_longer_is(
    store: RunStore, folder: str, kind: str
) -> None:
    run = store.create(PLAN, NOWHERE)
    assert [row["status"] for row in store.rows()] == ["queued"]
    IRREGULAR[kind](run.path / folder / "added")
    with pytest.raises(MlereduxError, match="added is a link or a device"):
        store.get(run.id)
    assert [row["status"] for row in store.rows()] == ["damaged"]
    (run.path / folder / "added").unlink()
    assert [row["status"] for row in store.rows()] == ["queued"]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.attack
def test_a_document_whose_values_would_fill_the_memory_is_refused_before_it_is_parsed(
    store: RunStore, name: str
) -> None:
    run = store.create(PLAN, NOWHERE)
    (run.path / name).write_bytes(b"[" + b"{}," * 2_100_000 + b"0]\n")
    with pytest.raises(MlereduxError, match=f"{re.escape(name)} (is damaged|has too many events)") as error:
        reopened = store.get(run.id)
        for view in ("report", "rollout", "manifest", "scores", "state"):
            getattr(reopened, view)
    assert str(error.value.__cause__) in ("it has too many values", "has too many events")


@pytest.mark.attack
def test_an_event_log_whose_events_would_fill_the_memory_is_refused(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    line = b'{"seq":1,"time":"2026-01-01T00:00:00Z","type":"warning","data":{"message":"a"}}\n'
    (run.path / "events.jsonl").write_bytes(line * 1_000)
    assert len(store.get(run.id).events()) == 1_000
    (run.path / "events.jsonl").write_bytes(line * 250_000)
    with pytest.raises(MlereduxError, match=r"events\.jsonl has too many events\.") as error:
        store.get(run.id).events()
    assert error.value.hint == "Restore it, or delete the run."


def test_a_long_record_of_resources_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "resources.csv").write_text(f"{'0' * 200}1,2,3,4,5,6\n" * 20_000)
    assert 1000 < len(read_timeline(tmp_path / "resources.csv")) < 10_000


def test_versions_of_the_submission_lie_in_the_run_whatever_its_log_says(store: RunStore) -> None:
    run = store.create(PLAN, NOWHERE)
    for path in ("/etc/passwd", "../../secret.csv", "submissions/../../secret.csv", "submissions/0001.csv"):
        run.emit(SubmissionKept(number=1, path=path, size=1))
    assert {version.path.parent for version in store.get(run.id).submissions()} == {run.path / "submissions"}


@pytest.mark.parametrize("name", ["\udcff\udcfe", "line\nbreak", "\x1b[31mred", "\u202ereversed", "a copy", "-rf"])
@pytest.mark.attack
def test_the_name_of_a_folder_hides_no_run(store: RunStore, name: str) -> None:
    good, folder = store.create(PLAN, NOWHERE), store.path / name
    shutil.copytree(good.path, folder)
    assert [row["id"] for row in store.rows() if row["status"] == "queued"] == [good.id]
    assert store.rebuild() == len(list(store.ids())) == 1 + (name in ("a copy", "-rf"))
    store.delete(store.locate(folder.name))
    assert not folder.exists() and [row["id"] for row in store.rows()] == [good.id]


@pytest.mark.parametrize("content", [None, b"", b'{"seq": 0, "type": "state"', b"[" * 100_000, b"\0" * 100])
@pytest.mark.parametrize("command", ["show", "cancel", "delete"])
def test_a_run_without_an_event_is_shown_cancelled_and_deleted(
    store: RunStore, command: str, content: bytes | None
) -> None:
    run = store.create(PLAN, NOWHERE)
    (run.path / "events.jsonl").unlink()
    if content is not None:
        (run.path / "events.jsonl").write_bytes(content)
    more = ["--yes"] if command == "delete" else []
    ended = CliRunner().invoke(root, ["runs", command, run.id, *more], env={"MLEREDUX_RUNS_DIR": str(store.path)})
    assert ended.exit_code == 0, (ended.output, ended.exception)


SPOILT: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "nested deeply": lambda path: path.write_text("[" * 100_000),
    "a file of a terabyte": IRREGULAR["a file of a terabyte"],
}


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("name", [".ticket", ".hold"])
def test_a_damaged_note_beside_a_run_stops_no_command(store: RunStore, name: str, kind: str) -> None:
    run = store.create(PLAN, NOWHERE)
    SPOILT[kind](run.path / name)
    assert store.get(run.id).held == (name == ".hold"), "a run is not graded before it is released"
    assert store.get(run.id).ticket == {} and store.get(run.id).status == "queued"
