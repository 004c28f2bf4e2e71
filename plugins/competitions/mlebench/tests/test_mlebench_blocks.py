"""The building blocks: trees, contents, splits, and what bad raw data get."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import py7zr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux.errors import DataError
from mleredux_competition_mlebench.blocks import (
    Csv,
    Preparation,
    SevenZip,
    TableSplit,
    Text,
    Workspace,
    Zip,
    bytes_feature,
    fast_floats,
    joined_groups,
    one_hot,
    texts,
)

FILES = {"a/1.txt": b"one", "a/2.txt": b"two", "b/c/3.txt": b"three"}


@pytest.fixture(params=["folder", "zip", "7z", "tar.gz"])
def raw(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A raw folder whose `things` are a folder or an archive."""
    raw = tmp_path / "raw"
    for name, data in FILES.items():
        (raw / "things" / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / "things" / name).write_bytes(data)
    if request.param == "folder":
        return raw
    archive, packed = tmp_path / "packed" / f"things.{request.param}", sorted(FILES)
    archive.parent.mkdir()
    if request.param == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            for name in packed:
                file.write(raw / "things" / name, name)
    elif request.param == "7z":
        with py7zr.SevenZipFile(archive, "w") as file:
            for name in packed:
                file.write(raw / "things" / name, name)
    else:
        with tarfile.open(archive, "w:gz") as file:
            for name in packed:
                file.add(raw / "things" / name, name)
    return archive.parent


def prepare(raw: Path, recipe: Any) -> Path:
    folder = raw.parent / "prepared"
    Preparation(recipe)(raw, folder / "public", folder / "private")
    return folder


def test_folders_and_archives_are_one_thing(raw: Path) -> None:
    def recipe(w: Workspace) -> None:
        tree = w.tree("things")
        w.public("picked", tree.pick(["b/c/3.txt", "a/1.txt"], ["x/3.txt", "1.txt"]))
        w.public("folders", tree.inside("b").pick_folders(["c"], ["d"]))
        w.private("all", tree.all(lambda name: name.startswith("a/")))
        w.private("packed.zip", Zip(tree.pick(["a/2.txt"], ["2.txt"])))

    prepared = prepare(raw, recipe)
    assert (prepared / "public/picked/x/3.txt").read_bytes() == b"three"
    assert (prepared / "public/picked/1.txt").read_bytes() == b"one"
    assert (prepared / "public/folders/d/3.txt").read_bytes() == b"three"
    assert sorted(path.name for path in (prepared / "private/all/a").iterdir()) == ["1.txt", "2.txt"]
    with zipfile.ZipFile(prepared / "private/packed.zip") as archive:
        assert archive.read("2.txt") == b"two"


def test_a_missing_file_is_named_before_anything_is_written(raw: Path) -> None:
    def recipe(w: Workspace) -> None:
        w.public("fine.txt", Text("fine"))
        w.public("picked", w.tree("things").pick(["a/1.txt", "a/9.txt"]))

    with pytest.raises(DataError, match=r"a/9\.txt"):
        prepare(raw, recipe)
    assert not (raw.parent / "prepared").exists()


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()

    def recipe(w: Workspace) -> None:
        w.public("first.txt", Text("written"))
        w.public("second.csv", Csv(pd.DataFrame({"a": [1]}), {"columns": ["none"]}))

    with pytest.raises(DataError):
        prepare(tmp_path / "raw", recipe)
    assert [path for path in (tmp_path / "prepared").rglob("*") if path.is_file()] == []


def test_files_of_a_folder_are_not_copied_where_links_work(tmp_path: Path) -> None:
    (tmp_path / "raw/things").mkdir(parents=True)
    source = tmp_path / "raw/things/big.bin"
    source.write_bytes(os.urandom(1 << 20))
    before = os.statvfs(tmp_path).f_bavail
    prepared = prepare(tmp_path / "raw", lambda w: w.public("things", w.tree("things").all()))
    target = prepared / "public/things/big.bin"
    assert target.read_bytes() == source.read_bytes()
    assert target.samefile(source) or os.statvfs(tmp_path).f_bavail > before - 128


def test_an_archive_name_cannot_lead_out(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with zipfile.ZipFile(tmp_path / "raw/things.zip", "w") as archive:
        archive.writestr("../evil.txt", "x")
    with pytest.raises(DataError, match="points outside"):
        prepare(tmp_path / "raw", lambda w: w.public("things", w.tree("things").all()))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"no train\.csv"),
        (b"", "Cannot read"),
        (b"id,y\n", "no rows"),
        (b"id,z\n1,2\n", "lacks the columns y"),
        (b"id,y\n1,2\n", "too few"),
        (b"id,y\n" + b"1,2\n" * 50 + b"5", "ends in the middle"),
        (b'id,y\n1,"2\n', "Cannot read|too few"),
        (b"\xff\xfe\x00", "Cannot read|lacks"),
    ],
)
def test_bad_tables(content: bytes | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    if content is not None:
        (tmp_path / "raw/train.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        prepare(tmp_path / "raw", TableSplit(ids="id", targets="y", fill={"y": 0}))
    assert not (tmp_path / "prepared").exists()


def test_archives_written_twice_are_equal(tmp_path: Path) -> None:
    members = {"x.txt": Text("x" * 1000), "y.txt": Text("y")}
    for name in ("1.zip", "2.zip"):
        Zip(members, folder="top").write(tmp_path / name)
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


def test_seven_zip_round_trip(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    SevenZip({"x.txt": Text("one"), "y.txt": Text("two")}).write(tmp_path / "raw/things.7z")
    assert Workspace(tmp_path / "raw").tree("things.7z").read("y.txt") == b"two"


def test_joined_groups_follow_the_order_drawn_and_keep_raw_order_inside() -> None:
    table = pd.DataFrame({"group": list("abcabc"), "row": range(6)})
    assert list(joined_groups(table, "group", ["c", "a"])["row"]) == [2, 5, 0, 3]


def test_one_hot() -> None:
    table = pd.DataFrame({"id": [7, 8], "label": ["y", "x"]}, index=[5, 3])
    assert one_hot(table, ["id"], "label", ("x", "y")).to_numpy().tolist() == [[7, 0, 1], [8, 1, 0]]


def test_patterns_of_file_names() -> None:
    table = pd.DataFrame({"id": ["abc", "xyz"], "n": [1, 2]})
    assert texts(table, "{id[0]}/{n}_{id}.npy") == ["a/1_abc.npy", "x/2_xyz.npy"]


def test_a_secret_salt_changes_the_split(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pd.DataFrame({"id": range(100), "y": 0}).to_csv(tmp_path / "raw/train.csv", index=False)
    published = Preparation(TableSplit(ids="id", targets="y", fill={"y": 0}))
    secret = published.with_settings(salt=b"of this installation")
    for name, preparation in (("1", published), ("2", secret), ("3", secret)):
        preparation(tmp_path / "raw", tmp_path / name / "public", tmp_path / name / "private")
    answers = [(tmp_path / name / "private/test.csv").read_bytes() for name in "123"]
    assert answers[0] != answers[1] == answers[2]


@settings(deadline=None)
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000)))
def test_fast_floats_are_exact_where_digits_are_few(numbers: list[Any]) -> None:
    assert list(fast_floats(map(str, numbers))) == [float(number) for number in numbers]


def test_fast_floats_of_many_digits_are_those_of_older_pandas() -> None:
    cells = ["37.395817300000001", "-122.10291849999999", "1.5e-3", ""]
    found = list(fast_floats(cells))
    assert found[2] == 0.0015
    assert found[3] != found[3]
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        assert found[:3] == list(pd.read_csv(io.StringIO("a\n" + "\n".join(cells[:3])))["a"])


def test_tfrecords(tmp_path: Path) -> None:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def record(name: bytes) -> bytes:
        features = field(1, field(1, b"image_name") + field(2, field(1, field(1, name))))
        features += field(1, field(1, b"target") + field(2, field(3, b"\x0a\x01\x01")))
        message = field(1, features)
        return struct.pack("<Q", len(message)) + b"crc1" + message + b"crc2"

    path = tmp_path / "x.tfrec"
    path.write_bytes(record(b"first") + record(b"second"))
    assert bytes_feature(path, "image_name") == ["first", "second"]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match="TFRecord"):
        bytes_feature(path, "image_name")
