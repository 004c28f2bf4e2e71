"""Names, locations, sizes, times and headers of files that predict the target."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import pandas as pd

from mleredux_audit_leaks.inventory import PublicFile
from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import column_skill
from mleredux_audit_leaks.truth import Truth, normal_ids, sides_of

LEAST = 0.2
"""Minimum skill at which a property of files is reported; it must also stand out from all permutations."""
FILES = 4000
HEADERS = 1500
HEADER_BYTES = 1 << 17
HEADS = {b"\x1f\x8b": 10, b"BZh": 4, b"\xfd7zXZ": 12, b"PK": 14, b"SQLite format 3": 100, b"ID3": 256, b"fLaC": 42}
HEADS |= {b"\x93NUMPY": 128, b"\x5c\1\0\0": 352, b"\0\0\1\x5c": 352}  # the last two are NIfTI, in either byte order
"""Number of bytes before the content, by the first bytes of a file."""
_TOKENS = r"[^0-9A-Za-z]+"
_NAMING = {"PatientID", "PatientName", "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"}


def check_files(truth: Truth, files: list[PublicFile], notes: list[str], seed: int) -> Iterator[AuditFinding]:
    """Check properties of the files that are named by the ids of the answers."""
    if len(truth.id_columns) != 1 or not files:
        return
    stems = normal_ids(pd.Series([file.parts[-1] for file in files]))
    rows = truth.first_rows.reindex(stems).to_numpy(dtype=float)
    if np.isnan(rows).all():
        rows = _within_names(truth, stems)
    if np.isnan(rows).all():
        rows = _named_folders(truth, files)
    named = np.flatnonzero(np.isfinite(rows))
    if len(named) > FILES:
        notes.append(f"Properties of files were judged on {FILES} of {len(named)} files.")
        named = np.sort(np.random.default_rng(seed).permutation(named)[:FILES])
    kinds = pd.Series([f"{files[place].parts[0]} {files[place].parts[-1].rpartition('.')[2]}" for place in named])
    # Check each type of file separately and all together, since a folder may be the label.
    alike = [_once(named[(kinds == kind).to_numpy()], rows) for kind in sorted(kinds.unique())[:10]]
    reported: set[str] = set()
    for group in alike if kinds.nunique() < 2 else [named, *alike]:
        if len(group) < 12:
            continue
        chosen = [files[place] for place in group]
        at = rows[group].astype(np.int64)
        properties = _outside(chosen, stems.iloc[group]) | _headers(chosen, notes, truth)
        for target in truth.targets:
            if target.labels.kind == "text":
                continue
            for name, values in properties.items():
                if name in reported or values.nunique() < 2:
                    continue
                # Several files of one row, such as copies, must not predict the target for one another.
                pairs = pd.DataFrame({"row": at, "value": values.to_numpy()}).drop_duplicates(ignore_index=True)
                labels = target.labels.take(pairs["row"].to_numpy())
                judged = column_skill(pairs["value"], labels, least=LEAST, seed=seed)
                if judged:
                    reported.add(name)
                    natural = name.startswith(("size", "blocks", "width", "height", "byte", "quotes", "unpacked"))
                    high, medium = (0.9, 0.5) if natural else (0.7, 0.3)
                    severity = "high" if judged.value >= high else "medium" if judged.value >= medium else "low"
                    if name == "place in the archive" and severity == "high":
                        severity = "medium"  # mostly due to proximity in time, as with the order of rows
                    yield AuditFinding(
                        kind="file",
                        severity=severity,
                        message=f"The {name} of the test files predicts {target.name!r}.",
                        statistic=judged.statistic("skill", LEAST),
                        figures={"files compared": len(chosen)},
                        examples=tuple(file.name for file in chosen[:3]),
                    )


def check_header_groups(truth: Truth, files: list[PublicFile], notes: list[str]) -> Iterator[AuditFinding]:
    """Check for patients, studies and series that headers of DICOM files name in both training and test data."""
    sides = sides_of(truth, [file for file in files if file.kind == "dicom"])
    values: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for side, of_side in sides.items():
        for file in of_side[:: max(1, len(of_side) // HEADERS)][:HEADERS]:
            try:
                header = _dicom(file.read(HEADER_BYTES))
            except ImportError:
                notes.append("DICOM headers were not read; to enable: pip install 'mleredux-audit-leaks[all]'.")
                return
            except (OSError, ValueError, KeyError, AttributeError, struct.error):
                continue
            for name in _NAMING & header.keys():
                values[side].setdefault(name, []).append(header[name])
    for name in sorted(values["test"].keys() & values["train"].keys()):
        known, tested = set(values["train"][name]) - {""}, values["test"][name]
        shared = sum(value in known for value in tested) / len(tested)
        if len(known) >= 8 and shared >= 0.02:
            yield AuditFinding(
                kind="groups",
                severity="medium" if shared >= 0.5 else "low",
                message=f"Test and training files share values of {name} in their headers.",
                statistic=Statistic(name="share of test files", value=shared, baseline=0, threshold=0.02),
                figures={"values in train": len(known)},
                examples=tuple(file.name for file in sides["test"][:3]),
            )


def _within_names(truth: Truth, stems: pd.Series) -> np.ndarray:
    """Match files whose names contain an id as one of their parts (`cat_0017.png` for 0017)."""
    parts = stems.str.split(_TOKENS, regex=True, expand=True).iloc[:, :6]
    rows = np.full(len(stems), np.nan)
    for place in parts.columns:
        met = truth.first_rows.reindex(parts[place]).to_numpy(dtype=float)
        if len(np.unique(met[np.isfinite(met)])) >= max(12, 0.5 * len(truth.first_rows)):
            rows = np.where(np.isfinite(rows), rows, met)
    return rows


def _named_folders(truth: Truth, files: list[PublicFile]) -> np.ndarray:
    """Match files in folders that are named after an id."""
    rows = np.full(len(files), np.nan)
    for depth in range(max(len(file.parts) for file in files) - 1):
        folders = pd.Series([file.parts[depth] if depth < len(file.parts) - 1 else "" for file in files])
        met = truth.first_rows.reindex(normal_ids(folders)).to_numpy(dtype=float)
        rows = np.where(np.isfinite(rows), rows, met)
    return rows


def _once(group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the first file of each row."""
    return group[np.sort(np.unique(rows[group], return_index=True)[1])]


def _outside(files: list[PublicFile], stems: pd.Series) -> dict[str, pd.Series]:
    """Return the properties that a directory listing shows."""
    traits = {
        "folder": pd.Series(["/".join(file.parts[:-1]) for file in files]),
        "suffix": pd.Series([file.parts[-1].rpartition(".")[2] for file in files]),
        "size": pd.Series([str(file.size) for file in files]),
        "modification time": pd.Series([f"{file.time:.3f}" for file in files]),
        "length of the name": pd.Series([str(len(file.parts[-1])) for file in files]),
    }
    traces = {name: None for file in files for name in file.traces}
    traits |= {name: pd.Series([file.traces.get(name, "") for file in files]) for name in traces}
    depth = min(len(file.parts) for file in files)
    traits |= {f"folder {place + 1}": pd.Series([file.parts[place] for file in files]) for place in range(depth - 1)}
    parts = stems.str.split(_TOKENS, regex=True, expand=True).iloc[:, :8].fillna("")
    traits |= {f"part {place + 1} of the name": parts.iloc[:, place] for place in range(parts.shape[1])}
    order = {"place in the archive": pd.Series([str(place) for place in range(len(files))])}
    return traits | (order if all(file.packed for file in files) else {})


def _headers(files: list[PublicFile], notes: list[str], truth: Truth) -> dict[str, pd.Series]:
    """Return header fields of files whose format has them; a field is blank for files that lack it."""
    readers = {"picture": _picture, "sound": _sound, "dicom": _dicom, "parquet": _parquet}
    if len(files) > HEADERS:
        notes.append(f"Headers of only {HEADERS} of {len(files)} files were read.")
    rows: list[dict[str, str]] = []
    missing: set[str] = set()
    for place, file in enumerate(files):
        row: dict[str, str] = {}
        if place < HEADERS and not file.listed_only:
            try:
                data = file.read(HEADER_BYTES)
                row = readers[file.kind](data) if file.kind else {}
                row |= _form(data)
            except ImportError:
                missing.add(str(file.kind))
            except (OSError, ValueError, LookupError, struct.error, zlib.error, AttributeError, SyntaxError):
                row["header"] = "damaged"
        rows.append(row)
    notes += [
        f"Headers of {kind} files were not read; to enable: pip install 'mleredux-audit-leaks[all]'."
        for kind in sorted(missing)
    ]
    frame = pd.DataFrame(rows).fillna("")
    # Bytes that divide the files alike, such as those of a quantization table, are judged once.
    distinct = {tuple(pd.factorize(frame[name])[0]): name for name in reversed(frame.columns)}
    return {f"{name} in the header": frame[name] for name in reversed(distinct.values()) if frame[name].nunique() > 1}


def _picture(data: bytes) -> dict[str, str]:
    from PIL import ExifTags, Image

    Image.MAX_IMAGE_PIXELS = None  # only headers are read here
    with Image.open(io.BytesIO(data)) as picture:
        header = {"width": str(picture.width), "height": str(picture.height), "mode": picture.mode}
        header |= {f"EXIF {ExifTags.TAGS.get(tag, tag)}": str(value)[:200] for tag, value in picture.getexif().items()}
        for key, value in picture.info.items():
            if isinstance(value, (str, int, float, bytes, tuple)) and key not in ("exif", "icc_profile"):
                header[f"field {key}"] = str(value)[:200]
    return header


def _sound(data: bytes) -> dict[str, str]:
    """Parse the chunks of RIFF (WAV) or FORM (AIFF) files: rate, channels, length, and texts (such as RIFF `LIST`)."""
    order = "<" if data[:4] == b"RIFF" else ">"
    place, header = 12, {}
    while place + 8 <= len(data):
        name, length = data[place : place + 4], struct.unpack_from(f"{order}I", data, place + 4)[0]
        body = data[place + 8 : place + 8 + min(length, 400)]
        if name in (b"fmt ", b"COMM"):
            header["format"] = body[:26].hex()
        elif name in (b"data", b"SSND"):
            header["length"] = str(length)
        else:
            header[f"chunk {name.decode('latin-1')}"] = body.decode("latin-1")
        place += 8 + length + length % 2
    return header


def _form(data: bytes) -> dict[str, str]:
    """Return traits of how a file was written that do not depend on its content: line endings, quotes and separators of
    text; each header byte of a binary file, and of the contents of a gzip file."""
    length = next((length for start, length in HEADS.items() if data.startswith(start)), 0)
    if data.startswith(b"\x89PNG"):
        length = min(data.find(b"IDAT") + 6, 512)  # and the level of compression
    elif data.startswith(b"\x1f\x8b") and data[3]:
        length = 64  # and a name, a comment or other fields
    form = {f"byte {place}": f"{value}" for place, value in enumerate(data[:length])}
    if data.startswith(b"\x1f\x8b"):
        inside = zlib.decompressobj(31).decompress(data, 4096).removeprefix(b"\x1f\x8b")  # one level deep
        return form | {f"unpacked {name}": value for name, value in _form(inside).items()}
    text = data[:4096].decode("utf-8", "ignore")
    if not length and "\0" not in text and len(text.encode()) > len(data[:4096]) - 4:
        ends = {end[len(end.rstrip()) :] for end in text.splitlines(keepends=True)[:-1]}
        form |= {"line ends": f"{sorted(ends)}", "quotes": "".join(mark for mark in "\ufeff\"'\t;|" if mark in text)}
    return form


def _parquet(data: bytes) -> dict[str, str]:
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(io.BytesIO(data))
    return {"writer": metadata.created_by, "metadata": str(metadata.metadata)}


def _dicom(data: bytes) -> dict[str, str]:
    import pydicom

    read = pydicom.dcmread(io.BytesIO(data), stop_before_pixels=True, force=True)
    return {str(item.keyword or item.tag): str(item.value)[:200] for item in read if not isinstance(item.value, bytes)}
