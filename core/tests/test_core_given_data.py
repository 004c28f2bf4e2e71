"""What `--from` finds of what a user downloaded."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from mleredux._core.data import DataStore
from mleredux._core.data.archives import find_source, unpack, unpack_inner
from mleredux._core.plugins import current
from mleredux._core.stages.prepare import prepare
from mleredux.errors import DataError
from mleredux.models import Competition, Metric, Submission

NAME = "spaceship-titanic"


def packed(path: Path, **files: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("place", [f"{NAME}.zip", f"{NAME} (1).zip", f"{NAME}/{NAME}.zip"])
def test_the_archive_is_found_among_other_files(tmp_path: Path, place: str) -> None:
    archive = packed(tmp_path / place, a=b"1")
    (tmp_path / "holiday.zip").touch()
    (tmp_path / f"{NAME}-2.zip").touch()
    assert find_source(tmp_path, NAME) == archive


def test_of_several_downloads_the_newest_counts(tmp_path: Path) -> None:
    packed(tmp_path / f"{NAME}.zip", a=b"1")
    newest = packed(tmp_path / f"{NAME} (2).zip", a=b"2")
    os.utime(tmp_path / f"{NAME}.zip", (1, 1))
    assert find_source(tmp_path, NAME) == newest


def test_raw_files_are_used_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = tmp_path / NAME
    unpacked.mkdir()
    (unpacked / "train.csv").touch()
    assert find_source(tmp_path, NAME) == unpacked and find_source(unpacked, NAME) == unpacked
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_source(Path("~"), NAME) == unpacked


@pytest.mark.parametrize("inside", ["zip", "folder", "zip of a folder"])
def test_what_is_packed_twice_is_unpacked_twice(tmp_path: Path, inside: str) -> None:
    content = {f"{NAME}/train.csv": b"id"} if "folder" in inside else {"train.csv": b"id"}
    archive = packed(tmp_path / "inner.zip", **content)
    if "zip" in inside:
        archive = packed(tmp_path / "outer.zip", **{f"{NAME}.zip": archive.read_bytes()})
    place = tmp_path / "raw"
    place.mkdir()
    unpack(archive, place)
    unpack_inner(place, NAME)
    assert [path.relative_to(place).as_posix() for path in place.rglob("*")] == ["train.csv"]
    assert not place.with_name("raw-inner").exists()


@pytest.mark.parametrize("place", ["archive.zip", f"data/{NAME}.zip", f"data/{NAME}/{NAME}.zip"])
def test_an_archive_that_lies_alone_is_found_by_any_name(tmp_path: Path, place: str) -> None:
    archive = packed(tmp_path / "downloads" / place, a=b"1")
    (tmp_path / "downloads" / ".DS_Store").touch()
    assert find_source(tmp_path / "downloads", NAME) == archive


def test_a_folder_that_lies_alone_among_raw_files_is_one_of_them(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.png").touch()
    assert find_source(tmp_path, NAME) == tmp_path


@pytest.mark.parametrize("place", ["data/", "My Data (1)/", "a/b/", f"x/{NAME}/", ""])
@pytest.mark.parametrize("packed_", [True, False])
@pytest.mark.parametrize("also", [(), ("__MACOSX/._data", ".DS_Store")])
def test_files_in_one_folder_are_found(place: str, packed_: bool, also: tuple[str, ...], tmp_path: Path) -> None:
    files = {f"{place}{name}": b"x" for name in ("train.csv", "folder/image.png")} | dict.fromkeys(also, b"x")
    given = packed(tmp_path / "given.zip", **files)
    if not packed_:
        (tmp_path / "given").mkdir()
        unpack(given, tmp_path / "given")
        given = tmp_path / "given"
    prepared = prepare(_task(tmp_path), current(), DataStore(tmp_path / "data"), source=given)
    assert (prepared.public / "train.csv").read_bytes() == b"x"


def test_without_the_files_the_error_speaks_of_the_folder_given(tmp_path: Path) -> None:
    given = packed(tmp_path / "given.zip", **{"data/other.csv": b"x"})
    with pytest.raises(DataError, match=r"raw has no train\.csv"):
        prepare(_task(tmp_path), current(), DataStore(tmp_path / "data"), source=given)


def _task(tmp_path: Path) -> Competition:
    (tmp_path / "description.md").write_text("Predict y.\n")

    def write(raw: Path, public: Path, private: Path) -> None:
        (public / "written-first.csv").open("x").close()
        if not (raw / "train.csv").is_file() or not (raw / "folder" / "image.png").is_file():
            raise DataError(f"{raw} has no train.csv.")
        (public / "train.csv").write_bytes((raw / "train.csv").read_bytes())
        (public / "sample_submission.csv").write_text("id,y\na,1\n")
        (private / "answers.csv").write_text("id,y\na,1\n")

    return Competition(
        id=NAME,
        title="Titanic",
        description=tmp_path / "description.md",
        prepare=write,
        submission=Submission(id_columns=("id",)),
        metric=Metric(grader="accuracy"),
        direction="maximize",
        sets=("starter",),
    )
