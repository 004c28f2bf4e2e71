"""Each type of leak, planted into a clean task, is found; the clean task has no findings."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import py7zr
import pytest

Plant = Callable[[Any], None]


def same_column(toy: Any) -> None:
    toy.test["quality"] = toy.label


def other_spelling(toy: Any) -> None:
    toy.test["quality"] = np.array(["x", "a", "m"])[toy.label]


def nearly(toy: Any) -> None:
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, len(toy.test))
    toy.test["reading"] = (toy.label * 2 + noise).round(4)


def only_where_filled(toy: Any) -> None:
    for frame, label in ((toy.test, toy.label), (toy.train, toy.train["label"])):
        told = (label == 1) & (np.arange(len(frame)) % 2 == 0)
        frame["inspector"] = np.where(told, [f"person {row}" for row in range(len(frame))], "")


def zipped_table(toy: Any) -> None:
    toy.public.mkdir()
    with zipfile.ZipFile(toy.public / "extra.zip", "w") as archive:
        archive.writestr("notes/full.csv", toy.answers.rename(columns={"label": "y"}).to_csv(index=False))


def packed_tar(toy: Any) -> None:
    import io
    import tarfile

    toy.public.mkdir()
    content = toy.answers.rename(columns={"label": "y"}).to_csv(index=False).encode()
    with tarfile.open(toy.public / "extra.tar.gz", "w:gz") as archive:
        for name, body in (("picture.bin", bytes(100)), ("notes/full.csv", content)):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))


def packed_7z(toy: Any) -> None:
    toy.public.mkdir()
    with py7zr.SevenZipFile(toy.public / "extra.7z", "w") as archive:
        archive.writestr(bytes(100), "picture.bin")
        archive.writestr(toy.answers.rename(columns={"label": "y"}).to_csv(index=False), "notes/full.csv")


def json_mapping(toy: Any) -> None:
    toy.public.mkdir()
    mapping = {str(row.id): int(row.label) for row in toy.answers.itertuples()}
    (toy.public / "meta.json").write_text(json.dumps({"version": 2, "items": mapping}))


def answers_file(toy: Any) -> None:
    toy.write()
    (toy.public / "backup.bin").write_bytes((toy.private / "answers.csv").read_bytes())


def lines_in_a_log(toy: Any) -> None:
    toy.public.mkdir()
    lines = "\n".join(f"{row.id},{row.label}" for row in toy.answers.head(100).itertuples())
    (toy.public / "log.md").write_text(f"written:\n\n{lines}\n")


def tfrecords(toy: Any) -> None:
    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2]) + varint(len(body)) + body

    def varint(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    toy.public.mkdir()
    for part in range(4):
        content = b""
        for row in toy.answers.iloc[part::4].itertuples():
            name = field(1, b"name") + field(2, field(1, field(1, str(row.id).encode())))
            target = field(1, b"target") + field(2, field(3, field(1, varint(row.label))))
            record = field(1, field(1, name) + field(1, target))
            content += struct.pack("<Q", len(record)) + bytes(4) + record + bytes(4)
        (toy.public / f"test{part}.tfrec").write_bytes(content)


def sorted_rows(toy: Any) -> None:
    order = np.argsort(toy.label, kind="stable")
    toy.test = toy.test.iloc[order].reset_index(drop=True)


def sorted_ids(toy: Any) -> None:
    ids = np.sort(toy.answers["id"].to_numpy())[np.argsort(np.argsort(toy.label, kind="stable"))]
    for frame in (toy.answers, toy.test, toy.sample):
        frame["id"] = ids


def labels_in_ids(toy: Any) -> None:
    ids = [f"k{label}-{row:04d}" for row, label in enumerate(toy.label)]
    for frame in (toy.answers, toy.test, toy.sample):
        frame["id"] = ids


def near_ids(toy: Any) -> None:
    label = np.repeat(np.random.default_rng(2).integers(3, size=40), 10)
    at = np.random.default_rng(3).permutation(400)
    test, train = np.sort(at[:200]), np.sort(at[200:])
    for frame in (toy.answers, toy.test, toy.sample):
        frame["id"] = np.random.default_rng(4).permutation(test)
    toy.answers["label"] = label[toy.answers["id"]]
    toy.train["id"], toy.train["label"] = train, label[train]


def files(toy: Any, name: Callable[[Any], str], content: Callable[[Any], bytes], time: Callable[[Any], float]) -> None:
    for row in toy.answers.sample(frac=1, random_state=5).itertuples():
        path = toy.public / name(row)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(row))
        os.utime(path, (time(row), time(row)))


def noise(row: Any) -> bytes:
    return np.random.default_rng(row.id).bytes(64)


def folders(toy: Any) -> None:
    files(toy, lambda row: f"test/{'abc'[row.label]}/{row.id}.dat", noise, lambda row: 1e9)


def file_names(toy: Any) -> None:
    files(toy, lambda row: f"test/{'abc'[row.label]}_{row.id}.dat", noise, lambda row: 1e9)


def times(toy: Any) -> None:
    files(toy, lambda row: f"test/{row.id}.dat", noise, lambda row: 1e9 + 1000 * row.label + row.id % 100)


def sizes(toy: Any) -> None:
    files(toy, lambda row: f"test/{row.id}.dat", lambda row: noise(row) * (row.label + 1), lambda row: 1e9)


def exif(toy: Any) -> None:
    import io

    from PIL import Image

    def picture(row: Any) -> bytes:
        made = Image.fromarray(np.frombuffer(noise(row), dtype=np.uint8).reshape(8, 8))
        tags = Image.Exif()
        tags[0x0110] = f"camera {row.label}"
        kept = io.BytesIO()
        made.save(kept, "JPEG", exif=tags)
        return kept.getvalue()

    files(toy, lambda row: f"test/{row.id}.jpg", picture, lambda row: 1e9)


def sounds(toy: Any) -> None:
    def sound(row: Any) -> bytes:
        body = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000 + 1000 * row.label, 8000, 1, 8)
        body += b"data" + struct.pack("<I", 64) + noise(row)
        return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body

    files(toy, lambda row: f"test/{row.id}.wav", sound, lambda row: 1e9)


def dicom(toy: Any) -> None:
    import io

    import pydicom
    from pydicom.uid import ExplicitVRLittleEndian

    def image(row: Any) -> bytes:
        made = pydicom.Dataset()
        made.PatientID, made.InstitutionName = f"p{row.id}", f"hospital {row.label}"
        kept = io.BytesIO()
        made.file_meta = pydicom.dataset.FileMetaDataset()
        made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        made.file_meta.MediaStorageSOPClassUID = made.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        pydicom.dcmwrite(kept, made, enforce_file_format=True)
        return kept.getvalue()

    files(toy, lambda row: f"test/{row.id}.dcm", image, lambda row: 1e9)


def copied_rows(toy: Any) -> None:
    copies = toy.test.head(60).assign(label=toy.label[:60], id=range(90_000, 90_060))
    toy.train = pd.concat([toy.train, copies], ignore_index=True)


def near_copies(toy: Any) -> None:
    copies = toy.test.head(60).assign(label=toy.label[:60], id=range(90_000, 90_060))
    copies["measure"] = copies["measure"] * 1.0001
    copies["town"] = copies["town"].str.upper() + " "
    toy.train = pd.concat([toy.train, copies], ignore_index=True)


def copied_files(toy: Any) -> None:
    files(toy, lambda row: f"test/{row.id}.dat", noise, lambda row: 1e9)
    (toy.public / "train").mkdir()
    for place, row in enumerate(toy.answers.head(60).itertuples()):
        (toy.public / f"train/{90_000 + place}.dat").write_bytes(noise(row))
        toy.train.loc[place, ["id", "label"]] = [90_000 + place, row.label]


def groups(toy: Any) -> None:
    of_group = np.random.default_rng(6).integers(3, size=50)
    rng = np.random.default_rng(7)
    toy.train["cohort"], toy.test["cohort"] = rng.integers(50, size=200), rng.integers(50, size=200)
    toy.train["label"], toy.answers["label"] = of_group[toy.train["cohort"]], of_group[toy.test["cohort"]]


def angles(toy: Any) -> None:
    groups(toy)
    values = np.random.default_rng(10).uniform(30, 45, 50).round(4)
    for frame in (toy.train, toy.test):
        frame["angle"] = values[frame.pop("cohort")]


def id_prefixes(toy: Any) -> None:
    groups(toy)
    for number, frame in enumerate((toy.train, toy.test)):
        frame["id"] = [f"{code:04d}_{number}{row}" for row, code in enumerate(frame.pop("cohort"))]
    toy.answers["id"] = toy.sample["id"] = toy.test["id"]


def knowing_sample(toy: Any) -> None:
    toy.sample["label"] = np.where(np.arange(len(toy.sample)) % 2 == 0, toy.label, 0)


LEAKS: list[tuple[Plant, str, str]] = [
    (same_column, "answers", "quality"),
    (other_spelling, "answers", "quality"),
    (nearly, "column", "reading"),
    (only_where_filled, "column", "inspector"),
    (zipped_table, "answers", "extra.zip!notes/full.csv"),
    (packed_tar, "answers", "extra.tar.gz!notes/full.csv"),
    (packed_7z, "answers", "extra.7z!notes/full.csv"),
    (json_mapping, "answers", "meta.json"),
    (answers_file, "answers", "backup.bin"),
    (lines_in_a_log, "answers", "log.md"),
    (tfrecords, "answers", "tfrec"),
    (sorted_rows, "order", "order of the rows of test.csv"),
    (sorted_ids, "order", "order of the ids"),
    (labels_in_ids, "id", "art 1 of the ids"),
    (near_ids, "id", "nearest id"),
    (folders, "file", "folder"),
    (file_names, "file", "part 1 of the name"),
    (times, "file", "modification time"),
    (sizes, "file", "size"),
    (exif, "file", "EXIF Model"),
    (sounds, "file", "format in the header"),
    (dicom, "file", "InstitutionName"),
    (copied_rows, "duplicates", "exact copies"),
    (near_copies, "duplicates", "near copies"),
    (copied_files, "duplicates", "identical"),
    (groups, "groups", "cohort"),
    (angles, "groups", "angle"),
    (id_prefixes, "groups", "first part of id"),
    (knowing_sample, "sample", "sample submission reveals"),
]


@pytest.mark.parametrize(("plant", "kind", "words"), LEAKS, ids=[plant.__name__ for plant, _, _ in LEAKS])
def test_a_planted_leak_is_found_and_severe(plant: Plant, kind: str, words: str, toy: Any) -> None:
    plant(toy)
    report = toy.audit()
    found = [one for one in report.findings if one.kind == kind and words in one.message]
    assert found, report.text()
    assert found[0].severity == "high", report.text()
    assert found[0].statistic.value >= found[0].statistic.threshold
    assert found[0].examples
    assert not report.clean


@pytest.mark.parametrize("kind", ["codes", "texts", "empty"])
def test_columns_that_tell_the_target_in_training_only_are_reported(kind: str, toy: Any) -> None:
    rng = np.random.default_rng(5)
    for frame, label in ((toy.train, toy.train["label"].to_numpy()), (toy.test, rng.integers(3, size=len(toy.test)))):
        numbers = rng.integers(100, 999, len(frame))
        told = {
            "codes": np.array([7, 2, 5])[label],
            "texts": [f"{'kpz'[k]}{n}" for k, n in zip(label, numbers, strict=True)],
        }
        frame["stage"] = told.get(kind, label)
    if kind == "empty":
        toy.test["stage"] = ""
    report = toy.audit()
    assert [(one.kind, one.severity) for one in report.findings] == [("column", "medium")], report.text()
    assert "'stage' predicts 'label' in train.csv, but not in test.csv" in report.findings[0].message
    assert report.clean, "it tells nothing about the answers"


def test_group_overlap_without_like_labels_is_only_mentioned(toy: Any) -> None:
    rng = np.random.default_rng(8)
    toy.train["patient_id"], toy.test["patient_id"] = rng.integers(50, size=200), rng.integers(50, size=200)
    report = toy.audit()
    assert [(one.kind, one.severity) for one in report.findings] == [("groups", "low")]
    assert report.clean


def test_a_measure_with_repeated_values_is_no_group(toy: Any) -> None:
    for frame, label in ((toy.train, toy.train["label"]), (toy.test, toy.label)):
        frame["age"] = (20 + 15 * label + np.random.default_rng(len(frame)).integers(20, size=len(frame))).astype(int)
    assert not [one for one in toy.audit().findings if one.kind == "groups"]


@pytest.mark.parametrize("plant", [packed_tar, packed_7z], ids=["tar.gz", "7z"])
def test_in_large_archives_tables_are_read_and_the_rest_is_listed(
    plant: Plant, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy)
    monkeypatch.setattr("mleredux_audit_leaks.inventory.KEPT_BYTES", 6000)
    monkeypatch.setattr("mleredux_audit_leaks.inventory.LARGEST_MEMBER", 50_000)
    report = toy.audit()
    assert [one for one in report.findings if "notes/full.csv" in one.message], report.text()
    monkeypatch.setattr("mleredux_audit_leaks.inventory.KEPT_BYTES", 10)
    report = toy.audit()
    assert report.clean, "what is not unpacked can't be judged"
    assert any("only names, sizes and times were checked" in note for note in report.notes)


def test_the_same_table_packed_and_unpacked_is_reported_once(toy: Any) -> None:
    same_column(toy)
    toy.write()
    with zipfile.ZipFile(toy.public / "test.zip", "w") as archive:
        archive.write(toy.public / "test.csv", "test.csv")
    report = toy.audit()
    assert [one.message for one in report.findings if "quality" in one.message] == [
        "Column 'quality' of test.csv is 'label' of the test rows."
    ]
    assert "test.zip!test.csv contains the same table as test.csv." in report.notes


def test_windows_that_overlap_within_one_side_only_are_no_leak(toy: Any) -> None:
    for seed, frame in ((1, toy.train), (2, toy.test)):
        series = np.random.default_rng(seed).normal(size=len(frame) + 8)
        for lag in range(8):
            frame[f"lag{lag}"] = series[lag : lag + len(frame)]
    assert toy.audit().findings == ()


def test_lags_of_a_series_whose_rows_were_split_at_random_are_a_leak(toy: Any) -> None:
    series = np.random.default_rng(3).normal(size=408)
    order = np.random.default_rng(4).permutation(400)
    for rows, frame in ((order[:200], toy.train), (order[200:], toy.test)):
        for lag in range(8):
            frame[f"lag{lag}"] = series[rows + lag]
    found = [one for one in toy.audit().findings if "they are equal if shifted" in one.message]
    assert len(found) == 1
    assert found[0].statistic.value > 0.5


def test_the_same_data_gives_the_same_report(toy: Any) -> None:
    groups(toy)
    assert toy.audit() == toy.audit()


def test_public_files_are_not_changed(toy: Any, tmp_path: Path) -> None:
    toy.write()
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    toy.audit()
    assert {path: before.get(path) for path in before} == {path: path.read_bytes() for path in before}
