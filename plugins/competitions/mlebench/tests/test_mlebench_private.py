"""Variant `+private`: the split of one installation, which nobody else can rebuild."""

from __future__ import annotations

import json
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux_competition_mlebench
import pandas as pd
import pytest
from mleredux._core.data import DataStore
from mleredux._core.data.installation import installation_salt, salt_path
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux.errors import DataError, InvalidSubmission, MlereduxError
from mleredux.models import Competition, GradingInput


@pytest.fixture(autouse=True)
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def _test_rows(shared: Path, data: Path, name: str) -> tuple[Competition, set[Any]]:
    """The task, and what is in its test rows beside their ids."""
    catalogue = Catalogue()
    task: Any = catalogue.task(name)
    source = shared / "data" / "kaggle" / "spaceship-titanic" / "spaceship-titanic.zip"
    done = prepare(task, catalogue, DataStore(data), source=source)
    rows = pd.read_csv(done.private / "test.csv", dtype=str).drop(columns="PassengerId").fillna("")
    return task, set(rows.itertuples(index=False, name=None))


@pytest.mark.shared
def test_the_split_is_the_installations_own_and_stays(shared: Path, tmp_path: Path, installation: Path) -> None:
    _, published = _test_rows(shared, tmp_path / "1", "spaceship-titanic")
    task, ours = _test_rows(shared, tmp_path / "1", "spaceship-titanic+private")
    _, again = _test_rows(shared, tmp_path / "2", "spaceship-titanic+private")
    assert len(ours) == len(published) == 870
    assert ours == again
    assert len(ours & published) < len(ours) / 4, "about a tenth is in both by chance"
    assert task.note is not None and "published split" in task.note
    assert task.checksums == {}

    salt_path().unlink()
    other, elsewhere = _test_rows(shared, tmp_path / "3", "spaceship-titanic+private")
    assert elsewhere != ours
    assert other.version != task.version, "data split by another salt are another version"


def test_the_salt_is_made_once_and_for_its_user_alone() -> None:
    first = installation_salt()
    assert installation_salt() == first
    assert stat.S_IMODE(salt_path().stat().st_mode) == 0o600
    assert first.hex() not in repr(Catalogue().task("spaceship-titanic+private").version)


def test_a_damaged_salt_is_a_sentence(installation: Path) -> None:
    salt_path().parent.mkdir(parents=True)
    salt_path().write_text("no salt")
    with pytest.raises(MlereduxError, match="salt"):
        installation_salt()


@pytest.mark.shared
def test_a_look_up_by_id_or_row_in_published_data_fails(shared: Path, tmp_path: Path) -> None:
    catalogue = Catalogue()
    task: Any = catalogue.task("spaceship-titanic+private")
    source = shared / "data" / "kaggle" / "spaceship-titanic" / "spaceship-titanic.zip"
    done = prepare(task, catalogue, DataStore(tmp_path), source=source)
    with zipfile.ZipFile(source) as archive, archive.open("train.csv") as file:
        kaggle = pd.read_csv(file)
    answers, sample = (pd.read_csv(path) for path in (done.private / "test.csv", done.public / "sample_submission.csv"))
    assert list(answers["PassengerId"]) == list(sample["PassengerId"])
    assert not set(answers["PassengerId"]) & set(kaggle["PassengerId"])
    by_row = (kaggle["Transported"][: len(answers)].to_numpy() == answers["Transported"].to_numpy()).mean()
    assert by_row < 0.6, "half are right by chance"
    assert "closed network" in task.note and "new ids" in task.note


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("dog-breed-identification", "test/{}.jpg"),
        ("bms-molecular-translation", "test/{0[0]}/{0[1]}/{0[2]}/{0}.png"),
        ("hotel-id-2021-fgvc8", "test_images/{}"),
    ],
)
def test_files_follow_the_new_ids(name: str, file: str, shared: Path, tmp_path: Path) -> None:
    task: Any = Catalogue().task(f"{name}+private")
    with zipfile.ZipFile(shared / "golden" / name / "raw.zip") as archive:
        archive.extractall(tmp_path / "raw")
    task.prepare.with_settings(salt=b"secret")(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    sample = pd.read_csv(tmp_path / "public" / "sample_submission.csv", dtype=str)
    ids = list(sample[task.submission.id_columns[0]])
    assert ids and all(one.startswith("t0") for one in ids)
    assert all((tmp_path / "public" / file.format(one)).is_file() for one in ids)
    assert len([*(tmp_path / "public" / file.partition("/")[0]).rglob("*.*g")]) == len(set(ids))


@pytest.mark.shared
def test_a_split_that_is_not_drawn_is_refused(shared: Path, tmp_path: Path) -> None:
    """The comments that Kaggle published with labels are the test set: there is nothing to draw."""
    task: Any = Catalogue().task("detecting-insults-in-social-commentary+private")
    source = shared / "data" / "kaggle" / task.raw_id / f"{task.raw_id}.zip"
    raw = tmp_path / "raw"
    with zipfile.ZipFile(source) as archive:
        archive.extractall(raw)
    for name in ("public", "private"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="has no random split"):
        task.prepare(raw, tmp_path / "public", tmp_path / "private")
    assert not any((tmp_path / "public").iterdir())


def _ids(sample: Path, task: Any) -> set[tuple[str, ...]]:
    rows = pd.read_csv(sample, dtype=str, keep_default_na=False)
    return set(rows[list(task.submission.id_columns)].itertuples(index=False, name=None))


def _texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the content of every file, with those of members of zip archives."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                yield from ((f"{name}/{member}", archive.read(member)) for member in archive.namelist())
        else:
            yield name, path.read_bytes() if path.is_file() else b""


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(ref.id for ref in mleredux_competition_mlebench.mleredux_register_tasks()))
def test_ids_are_new_in_every_file_or_the_note_says_what_remains(name: str, shared: Path, tmp_path: Path) -> None:
    task: Any = Catalogue().task(f"{name}+private")
    assert "are still Kaggle's, so only a closed network" in task.note
    assert "with new ids" in task.note or "The test set keeps the " in task.note
    with zipfile.ZipFile(shared / "golden" / name / "raw.zip") as archive:
        archive.extractall(tmp_path / "raw")
    expected = json.loads((shared / "golden" / name / "expected.json").read_text())
    size = (expected.get("overrides") or {}).get("test_size")
    pattern = task.prepare.settings.id_pattern
    grader: Any = Catalogue().grader(task.metric.grader)
    ids, scores = {}, {}
    for kind, kept in (("kept", None), ("new", pattern)):
        public, private = tmp_path / kind / "public", tmp_path / kind / "private"
        try:
            task.prepare.with_settings(test_size=size, id_pattern=kept)(tmp_path / "raw", public, private)
        except DataError as error:
            assert "has no random split" in str(error)
            return
        sample = public / str(task.submission.sample)
        ids[kind] = _ids(sample, task)
        try:
            score = grader.score(GradingInput(sample, private, task, task.metric.options))
        except InvalidSubmission as error:
            assert name == "tweet-sentiment-extraction", error  # its sample has no words
            score = 0.0
        scores[kind] = getattr(score, "value", score)
    assert scores["new"] == pytest.approx(scores["kept"], nan_ok=True), "the answers follow their ids"
    if pattern is None:
        return
    assert len(ids["new"]) == len(ids["kept"]) and not ids["new"] & ids["kept"]
    raw = [pd.read_csv(path, dtype=str) for path in (tmp_path / "raw").rglob("*.csv")]
    known = {cell for table in raw for column in {*task.submission.id_columns} & {*table} for cell in table[column]}
    assert not {cell for row in ids["new"] for cell in row} & known
    old = {found[1] for row in ids["kept"] for cell in row if (found := re.fullmatch(pattern, cell))}
    for where, content in _texts(tmp_path / "new" / "public"):
        told = [one for one in old if len(one) > 5 and (one in where or one.encode() in content)]
        assert not told, f"{where} names {told[0]}"
