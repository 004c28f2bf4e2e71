"""Each property of a file, its folder or its place in an archive that reveals the class is found."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image, PngImagePlugin

Mark = Callable[[Path, int], None]


def content(path: Path) -> bytes:
    return np.random.default_rng(zlib.crc32(path.name.encode())).bytes(300)


def mode(path: Path, label: int) -> None:
    path.write_bytes(content(path))
    path.chmod(0o604 + 0o10 * label)


def attribute(path: Path, label: int) -> None:
    path.write_bytes(content(path))
    os.setxattr(path, "user.source", b"hospital %d" % label)


def hard_links(path: Path, label: int) -> None:
    path.write_bytes(content(path))
    for number in range(label):
        os.link(path, path.with_name(f"spare-{number}-{path.name[::-1]}"))


def allocated(path: Path, label: int) -> None:
    with path.open("wb") as file:
        file.write(bytes(40_960 * label))  # the rest is a hole
        file.truncate(100_000)


def links(path: Path, label: int) -> None:
    pool = path.parents[1] / f"pool/{'xyz'[label]}"
    pool.mkdir(parents=True, exist_ok=True)
    (pool / path.name[::-1]).write_bytes(content(path))
    path.symlink_to(pool / path.name[::-1])


def folder_time(path: Path, label: int) -> None:
    folder = path.with_suffix("")
    folder.mkdir()
    (folder / "scan.dat").write_bytes(content(path))
    os.utime(folder, (1e9 + label * 60, 1e9 + label * 60))


def folder_mode(path: Path, label: int) -> None:
    folder = path.with_suffix("")
    folder.mkdir(0o755)
    (folder / "scan.dat").write_bytes(content(path))
    folder.chmod(0o755 - label)


def gzip_time(path: Path, label: int) -> None:
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(content(path), mtime=1e9 + label * 60))


def gzip_name(path: Path, label: int) -> None:
    with path.with_suffix(".csv.gz").open("wb") as file, gzip.GzipFile(f"class-{label}", "wb", 9, file, 0) as packed:
        packed.write(content(path))


def gzip_extra(path: Path, label: int) -> None:
    made = gzip.compress(content(path), mtime=0)
    field = struct.pack("<H2sHB", 5, b"ab", 1, label)
    path.with_suffix(".csv.gz").write_bytes(made[:3] + bytes([made[3] | 4]) + made[4:10] + field + made[10:])


def bzip2_level(path: Path, label: int) -> None:
    path.with_suffix(".csv.bz2").write_bytes(bz2.compress(content(path), label + 1))


def xz_check(path: Path, label: int) -> None:
    check = (lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64)[label]
    path.with_suffix(".csv.xz").write_bytes(lzma.compress(content(path), check=check))


def docx_time(path: Path, label: int) -> None:
    with zipfile.ZipFile(path.with_suffix(".docx"), "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.xml", (2020, 1, 1 + label, 0, 0, 0)), content(path))


def npz_time(path: Path, label: int) -> None:
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.npy", (2020, 1, 1 + label, 0, 0, 0)), content(path))


def picture(path: Path, save: Callable[[Image.Image, io.BytesIO], None]) -> bytes:
    kept = io.BytesIO()
    save(Image.frombytes("L", (10, 10), content(path)[:100]), kept)
    return kept.getvalue()


def png_time(path: Path, label: int) -> None:
    made = picture(path, lambda image, kept: image.save(kept, "PNG"))
    body = b"tIME" + struct.pack(">HBBBBB", 2020, 1, 1, label, 0, 0)
    chunk = struct.pack(">I", 7) + body + struct.pack(">I", zlib.crc32(body))
    path.with_suffix(".png").write_bytes(made[:33] + chunk + made[33:])


def png_text(path: Path, label: int) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("date:create", f"2020-01-0{label + 1}")
    path.with_suffix(".png").write_bytes(picture(path, lambda image, kept: image.save(kept, "PNG", pnginfo=texts)))


def webp_date(path: Path, label: int) -> None:
    facts = Image.Exif()
    facts[306] = f"2020:01:0{label + 1} 00:00:00"
    path.with_suffix(".webp").write_bytes(picture(path, lambda image, kept: image.save(kept, "WEBP", exif=facts)))


def jpeg_comment(path: Path, label: int) -> None:
    made = picture(path, lambda image, kept: image.save(kept, "JPEG", comment=f"camera {label}"))
    path.with_suffix(".jpg").write_bytes(made)


def parquet_writer(path: Path, label: int) -> None:
    table = pyarrow.table({"x": np.frombuffer(content(path), np.uint8)})
    made = table.replace_schema_metadata({"site": str(label)})
    pyarrow.parquet.write_table(made, path.with_suffix(".parquet"))


def png_level(path: Path, label: int) -> None:
    level = (1, 6, 9)[label]
    path.with_suffix(".png").write_bytes(
        picture(path, lambda image, kept: image.save(kept, "PNG", compress_level=level))
    )


def png_order(path: Path, label: int) -> None:
    png, chunks = picture(path, lambda image, kept: image.save(kept, "PNG", dpi=(72, 72), transparency=3)), []
    while len(chunks) < 2:
        place = 33 + sum(map(len, chunks))
        chunks.append(png[place : place + 12 + int.from_bytes(png[place : place + 4], "big")])
    parts, after = (chunks, chunks[::-1], chunks[1:])[label], png[33 + len(b"".join(chunks)) :]
    path.with_suffix(".png").write_bytes(png[:33] + b"".join(parts) + after)


def id3_tag(path: Path, label: int) -> None:
    text = b"\0genre %d" % label
    frame = b"TCON" + struct.pack(">IH", len(text), 0) + text
    path.with_suffix(".mp3").write_bytes(b"ID3\3\0\0" + struct.pack(">I", len(frame)) + frame + content(path))


def nifti(label: int) -> bytes:
    return struct.pack("<i", 348).ljust(148, b"\0") + b"scanner %d" % label + bytes(195)


def nifti_description(path: Path, label: int) -> None:
    path.with_suffix(".nii").write_bytes(nifti(label) + content(path))


def packed_nifti_description(path: Path, label: int) -> None:
    path.with_suffix(".nii.gz").write_bytes(gzip.compress(nifti(label) + content(path), mtime=0))


def sqlite_version(path: Path, label: int) -> None:
    with contextlib.closing(sqlite3.connect(path.with_suffix(".db"))) as base:
        base.execute(f"PRAGMA user_version = {label}")
        base.execute("CREATE TABLE a (b)")


def npy_version(path: Path, label: int) -> None:
    with path.with_suffix(".npy").open("wb") as file:
        np.lib.format.write_array(file, np.frombuffer(content(path), np.uint8), ((1, 0), (2, 0), (3, 0))[label])


def line_ends(path: Path, label: int) -> None:
    end = ("\n", "\r\n", " \n")[label]
    path.with_suffix(".csv").write_bytes(end.join(["a,b", *(f"{byte},1" for byte in content(path)[:9])]).encode())


def quoting(path: Path, label: int) -> None:
    mark = ("", "'", '"')[label]
    path.with_suffix(".csv").write_text("\n".join(f"{mark}{byte}{mark},1" for byte in content(path)[:9]))


LOOSE: dict[Mark, str] = {
    mode: "mode",
    attribute: "attributes",
    hard_links: "links",
    allocated: "blocks",
    links: "target folder of the link",
    folder_time: "modification time of the folder",
    folder_mode: "mode of the folder",
    gzip_time: "byte 4 in the header",
    gzip_name: "byte 16 in the header",
    gzip_extra: "byte 16 in the header",
    bzip2_level: "byte 3 in the header",
    xz_check: "byte 7 in the header",
    docx_time: "byte 12 in the header",
    npz_time: "byte 12 in the header",
    png_time: "byte 45 in the header",
    png_text: "field date:create in the header",
    webp_date: "EXIF DateTime in the header",
    jpeg_comment: "field comment in the header",
    parquet_writer: "metadata in the header",
    png_level: "byte 42 in the header",
    png_order: "byte 57 in the header",
    id3_tag: "byte 27 in the header",
    nifti_description: "byte 156 in the header",
    packed_nifti_description: "unpacked byte 156 in the header",
    sqlite_version: "byte 63 in the header",
    npy_version: "byte 6 in the header",
    line_ends: "line ends in the header",
    quoting: "quotes in the header",
}


@pytest.mark.parametrize("mark", LOOSE, ids=lambda mark: mark.__name__)
def test_a_property_of_files_that_reveals_the_class_is_found(mark: Mark, toy: Any) -> None:
    (toy.public / "test").mkdir(parents=True)
    for row in toy.answers.sample(frac=1, random_state=5).itertuples():
        mark(toy.public / f"test/{row.id}.dat", row.label)
    severities = found(toy)
    assert severities.get(f"The {LOOSE[mark]} of the test files predicts 'label'.") == "high", severities


def zipped(folder: Path, change: Callable[[zipfile.ZipInfo, int], None], rows: list[Any]) -> None:
    with zipfile.ZipFile(folder / "test.zip", "w") as archive:
        for row in rows:
            member = zipfile.ZipInfo(f"{row.id}.dat", (2020, 1, 1, 0, 0, 0))
            change(member, row.label)
            archive.writestr(member, content(Path(member.filename)))


def tarred(folder: Path, change: Callable[[tarfile.TarInfo, int], None], rows: list[Any], way: str) -> None:
    with tarfile.open(folder / f"test.tar{way and '.'}{way}", f"w:{way}") as archive:  # type: ignore[call-overload]
        for row in rows:
            member = tarfile.TarInfo(f"{row.id}.dat")
            member.size = 300
            change(member, row.label)
            archive.addfile(member, io.BytesIO(content(Path(member.name))))


@pytest.mark.parametrize("way", ["", "gz"])
@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("mode", lambda label: 0o600 + label, "mode"),
        ("uid", lambda label: 1000 + label, "owner"),
        ("gname", lambda label: f"group{label}", "owner"),
        ("pax_headers", lambda label: {"comment": f"class {label}"}, "attributes"),
    ],
)
def test_a_field_of_tar_members_is_found(field: str, value: Any, name: str, way: str, toy: Any) -> None:
    toy.public.mkdir()
    rows = list(toy.answers.sample(frac=1, random_state=5).itertuples())
    tarred(toy.public, lambda member, label: setattr(member, field, value(label)), rows, way)
    assert found(toy).get(f"The {name} of the test files predicts 'label'.") == "high"


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("external_attr", lambda label: (0o600 + label) << 16, "mode"),
        ("comment", lambda label: b"class %d" % label, "attributes"),
        ("extra", lambda label: struct.pack("<HHB", 0x7075, 1, label), "attributes"),
        ("compress_type", lambda label: (0, 8, 12)[label], "compression"),
    ],
)
def test_a_field_of_zip_members_is_found(field: str, value: Any, name: str, toy: Any) -> None:
    toy.public.mkdir()
    rows = list(toy.answers.sample(frac=1, random_state=5).itertuples())
    zipped(toy.public, lambda member, label: setattr(member, field, value(label)), rows)
    assert found(toy).get(f"The {name} of the test files predicts 'label'.") == "high"


@pytest.mark.parametrize("form", ["files", "folders", "zip", "tar"])
def test_files_without_marks_have_no_findings(form: str, toy: Any) -> None:
    rows = list(toy.answers.sample(frac=1, random_state=5).itertuples())
    toy.public.mkdir()
    if form == "zip":
        zipped(toy.public, lambda *_: None, rows)
    elif form == "tar":
        tarred(toy.public, lambda *_: None, rows, "")
    for row in rows if form in ("files", "folders") else ():
        path = toy.public / (f"test/{row.id}.dat" if form == "files" else f"test/{row.id}/scan.dat")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(Path(f"{row.id}")))
    assert found(toy) == {}


def found(toy: Any) -> dict[str, str]:
    """Return the severities of findings about files, by message."""
    return {finding.message: finding.severity for finding in toy.audit().findings if finding.kind == "file"}
