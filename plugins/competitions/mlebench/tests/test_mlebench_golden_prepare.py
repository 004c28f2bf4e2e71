"""Every declared competition prepares the golden cases to the published bytes."""

from __future__ import annotations

import hashlib
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux_competition_mlebench
import pandas as pd
import py7zr
import pytest
from mleredux._core.plugins.loader import resolve
from mleredux.errors import DataError
from mleredux_competition_mlebench.blocks import Preparation

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
ARCHIVES = (".zip", ".7z", ".tar.gz")
ONLY_PICTURES = {"alaska2-image-steganalysis", "plant-seedlings-classification"}  # loose ones, never opened


def preparation(competition: str) -> Preparation:
    task = resolve(REFS[competition])
    assert isinstance(task.prepare, Preparation)
    return task.prepare


def crc(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def members(path: Path) -> dict[str, str | None]:
    """Name → CRC of what an archive holds; folders have none."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as tar:
            return {info.name: crc(tar.extractfile(info).read()) for info in tar if info.isfile()}  # type: ignore[union-attr]
    if path.suffix == ".7z":
        with py7zr.SevenZipFile(path) as archive:
            entries = archive.list()
        return {entry.filename: None if entry.is_directory else f"{entry.crc32:08x}" for entry in entries}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {info.filename: f"{info.CRC:08x}" for info in archive.infolist()}


def table_md5(path: Path) -> str:
    return hashlib.md5(pd.read_parquet(path).to_csv(index=False).encode()).hexdigest()


def tree(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def empty_folders(folder: Path) -> list[str]:
    empty = (path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir()))
    return sorted(path.relative_to(folder).as_posix() for path in empty)


def check_file(path: Path, name: str, expected: dict[str, Any], unstable: bool, prepared: Path) -> None:
    if "members" in expected and (unstable or expected["md5"] is None):
        place = str(prepared).lstrip("/")
        wanted = {key.replace("<prepared>", place): fact["crc"] for key, fact in expected["members"].items()}
        found = members(path)
        if path.suffix == ".7z" and None in wanted.values():  # named after the place of preparation
            wanted = {key.rpartition("/")[2]: value for key, value in wanted.items()}
            found = {key.rpartition("/")[2]: value for key, value in found.items()}
        assert found == wanted, name
    elif "table" in expected:
        assert table_md5(path) == expected["table"]["csv_md5"], name
    else:
        data = path.read_bytes()
        assert (hashlib.md5(data).hexdigest(), len(data)) == (expected["md5"], expected["size"]), name


def check(prepared: Path, expected: dict[str, Any]) -> None:
    unstable = set(expected.get("unstable") or ())
    for side in ("public", "private"):
        files = tree(prepared / side)
        assert sorted(files) == sorted(expected["prepared"][side]), side
        for name, fact in expected["prepared"][side].items():
            check_file(files[name], f"{side}/{name}", fact, f"{side}/{name}" in unstable, prepared)
        if "empty_folders" in expected:
            assert empty_folders(prepared / side) == sorted(expected["empty_folders"].get(side, ()))


def unpack(archive: Path, folder: Path) -> Path:
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


@pytest.fixture
def golden(shared: Path) -> Path:
    return shared / "golden"


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_prepares_the_published_bytes(competition: str, golden: Path, golden_case: Callable[[Path], Path]) -> None:
    expected = json.loads((golden / competition / "expected.json").read_text())
    folder = golden_case(golden / competition)
    check(folder / "prepared", expected)
    with zipfile.ZipFile(golden / competition / "raw.zip") as packed:
        before = {info.filename: info.file_size for info in packed.infolist() if not info.is_dir()}
    after = {name: path.stat().st_size for name, path in tree(folder / "raw").items()}
    assert after == before, "the raw data was changed"


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_a_missing_raw_file_is_one_clear_error_before_anything_is_written(
    competition: str, golden: Path, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError) as caught:
        preparation(competition)(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    assert caught.value.message.count("\n") == 0
    assert not tree(tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS.keys() - ONLY_PICTURES))
def test_raw_files_cut_short_are_an_error_and_leave_nothing_behind(
    competition: str, golden: Path, tmp_path: Path
) -> None:
    raw = unpack(golden / competition / "raw.zip", tmp_path / "raw")
    for path in tree(raw).values():
        path.write_bytes(path.read_bytes()[:16])
    with pytest.raises(DataError):
        preparation(competition)(raw, tmp_path / "public", tmp_path / "private")
    assert not tree(tmp_path / "public")
    assert not tree(tmp_path / "private")


@pytest.mark.shared
def test_the_number_of_test_rows_can_be_set_for_small_data(golden: Path, tmp_path: Path) -> None:
    folder = golden / "tabular-playground-series-may-2022"
    expected = json.loads((folder / "expected.json").read_text())["miniature"]
    raw = unpack(folder / expected["raw"], tmp_path / "raw")
    prepare = preparation(folder.name).with_settings(test_size=expected["overrides"]["split.test_size"])
    prepare(raw, tmp_path / "prepared" / "public", tmp_path / "prepared" / "private")
    check(tmp_path / "prepared", expected)


@pytest.mark.shared
def test_the_draws_of_alaska2_at_full_size(golden: Path, tmp_path: Path) -> None:
    folder = golden / "alaska2-image-steganalysis"
    expected = json.loads((folder / "expected.json").read_text())["full_size"]
    with tarfile.open(folder / "full_size.tar.xz") as archive:
        archive.extractall(tmp_path / "raw", filter="data")
    (raw,) = {path.parent for path in (tmp_path / "raw").rglob("Cover")}
    preparation(folder.name)(raw, tmp_path / "public", tmp_path / "private")
    for side in ("public", "private"):
        for name, fact in expected[side].items():
            if name.endswith("/"):
                assert sum(1 for _ in (tmp_path / side / name).iterdir()) == fact["files"], name
            else:
                assert hashlib.md5((tmp_path / side / name).read_bytes()).hexdigest() == fact["md5"], name
