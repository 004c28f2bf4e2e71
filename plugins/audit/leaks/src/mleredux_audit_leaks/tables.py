"""Tables among files of any format, read as text: CSV, JSON, Parquet, NumPy arrays, TFRecords, NMEA."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mleredux_audit_leaks.inventory import PublicFile


def positions(data: bytes) -> Iterator[dict[str, str]]:
    """Yield time of day, latitude and longitude in degrees for each fix in an NMEA 0183 log (sentences GGA and RMC)."""
    for line in data.decode("ascii", "replace").splitlines():
        parts = line.partition("*")[0].split(",")
        first = {"GGA": 2, "RMC": 3}.get(parts[0][-3:])
        if not line.startswith("$") or first is None or len(parts) < first + 4:
            continue
        latitude, longitude = _degrees(*parts[first : first + 2]), _degrees(*parts[first + 2 : first + 4])
        if latitude is not None and longitude is not None:
            yield {"time": parts[1], "latitude": f"{latitude:.12g}", "longitude": f"{longitude:.12g}"}


def _degrees(text: str, side: str) -> float | None:
    """Convert `dddmm.mmmm` (degrees and minutes) to degrees, negative for south and west."""
    try:
        number = float(text)
    except ValueError:
        return None
    whole = int(number // 100)
    return (whole + (number - 100 * whole) / 60) * (-1 if side in ("S", "W") else 1)


def examples(data: bytes) -> Iterator[dict[str, str]]:
    """Yield the scalar features of each `tf.train.Example`; a record consists of length (8 bytes), its CRC (4), data,
    its CRC (4)."""
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        body = data[place + 12 : place + 12 + length]
        if len(body) < length:
            return
        row: dict[str, str] = {}
        for _, features in _fields(body):
            for _, entry in _fields(features):
                parts = dict(_fields(entry)) if isinstance(entry, bytes) else {}
                name, value = parts.get(1, b""), parts.get(2, b"")
                text = _feature(value) if isinstance(value, bytes) else None
                if text is not None and isinstance(name, bytes):
                    row[name.decode("utf-8", "replace")] = text
        yield row
        place += 16 + length


def _feature(value: bytes) -> str | None:
    for kind, content in _fields(value):
        if not isinstance(content, bytes):
            return None
        for _, item in _fields(content):
            if kind == 1 and isinstance(item, bytes):
                return item.decode("utf-8", "replace") if len(item) <= _LONGEST_CELL else None
            if kind == 2 and isinstance(item, bytes) and len(item) == 4:
                return str(struct.unpack("<f", item)[0])
            if kind == 3:
                return str(item if isinstance(item, int) else _varint(item, 0)[0])
    return None


def _fields(data: bytes | int) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a protocol buffer message as (number, value)."""
    place = 0
    while isinstance(data, bytes) and place < len(data):
        key, place = _varint(data, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            yield key >> 3, data[place : place + width]
            place += width
        elif wire == 2:
            length, place = _varint(data, place)
            yield key >> 3, data[place : place + length]
            place += length
        else:
            return


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if byte < 0x80:
            break
    return value, place


LARGEST_TABLE = 96 << 20
"""Maximum number of bytes to read from one file."""
MOST_ROWS = 300_000
MOST_CELLS = 1_000_000
"""Maximum number of cells of an array to read as text."""
MOST_TABLES = 120
MOST_SEQUENCES = 400
"""Maximum number of similar files in a folder; beyond it, they are samples rather than tables."""
_LONGEST_CELL = 512


@dataclass
class Table:
    """A table of texts.

    Attributes:
        name: The file; a part of a JSON document is appended after `#`.
        frame: All cells as text, with blanks as empty strings.
        cut: Whether the table is only the beginning of the file.
        rows: Number of rows in the file, if known without reading all of it.
        matrix: The same data of an array as numbers; may have more rows than the frame.
    """

    name: str
    frame: pd.DataFrame
    cut: bool = False
    rows: int = 0
    matrix: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.rows = self.rows or len(self.frame)


def read_tables(file: PublicFile, limit: int = LARGEST_TABLE) -> Iterator[Table]:
    """Yield the tables in a file; none if it is not a table.

    Raises:
        ValueError: The file is named like a table, but is damaged.
    """
    suffixes = PurePosixPath(file.parts[-1].lower()).suffixes
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".csv", ".tsv", ".txt", ".dat", ".data", ".gz"):
        frame = _separated(file, suffix, limit)
        if frame is not None:
            yield Table(file.name, frame, file.size > limit or len(frame) >= MOST_ROWS)
    elif suffix in (".json", ".jsonl", ".ndjson"):
        for part, frame in _json(file, limit):
            yield Table(f"{file.name}#{part}" if part else file.name, frame, file.size > limit)
    elif suffix in (".parquet", ".feather") and file.size <= limit:
        data = io.BytesIO(file.read(limit))
        try:
            frame = pd.read_parquet(data) if suffix == ".parquet" else pd.read_feather(data)
        except ImportError:
            return
        yield Table(file.name, _texts(frame.head(MOST_ROWS)), len(frame) > MOST_ROWS)
    elif suffix == ".npy" or (suffix == ".npz" and file.size <= limit):
        yield from _arrays(file, suffix, limit)
    elif suffix == ".nmea":
        if fixes := list(positions(file.read(limit))):
            yield Table(file.name, _texts(pd.DataFrame(fixes)), file.size > limit)
    elif suffix in (".tfrec", ".tfrecord", ".tfrecords") and (rows := list(examples(file.read(limit)))):
        yield Table(file.name, _texts(pd.DataFrame(rows)), file.size > limit)


def _separated(file: PublicFile, suffix: str, limit: int) -> pd.DataFrame | None:
    data = file.read(limit)
    if suffix == ".gz":
        if not data.startswith(b"\x1f\x8b"):
            return None
        import gzip

        with gzip.open(io.BytesIO(data)) as packed:
            data = packed.read(limit)
    if file.size > limit:
        data = data[: data.rfind(b"\n") + 1]
    first = data[: data.find(b"\n") + 1 or len(data)].decode("utf-8", "replace")
    marks = ",;\t|" if suffix == ".csv" else "\t,;| "
    separator = next((mark for mark in marks if mark in first), ",")
    if b"\x00" in data[:4096] or not first.strip():
        return None
    frame = pd.read_csv(
        io.BytesIO(data),
        sep=separator,
        dtype=str,
        keep_default_na=False,
        nrows=MOST_ROWS,
        on_bad_lines="skip",
        encoding_errors="replace",
        index_col=False,
    )
    return frame if (len(frame) and frame.shape[1] > 1) or suffix in (".csv", ".tsv") else None


def _json(file: PublicFile, limit: int) -> Iterator[tuple[str, pd.DataFrame]]:
    data = file.read(limit)
    try:
        yield from _parts(json.loads(data), "", 3)
    except ValueError:
        rows = []
        for line in data.splitlines()[:MOST_ROWS]:
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        if rows and all(isinstance(row, dict) for row in rows):
            yield "", _texts(pd.DataFrame(rows))


def _parts(content: Any, name: str, depth: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield lists of objects, objects of values, objects of objects and columns in a JSON document."""
    if isinstance(content, list) and content and all(isinstance(item, dict) for item in content[:50]):
        yield name, _texts(pd.DataFrame([item for item in content[:MOST_ROWS] if isinstance(item, dict)]))
    elif isinstance(content, dict) and content:
        values = list(content.values())
        if all(isinstance(value, (str, int, float, bool)) for value in values):
            yield name, _texts(pd.DataFrame({"key": list(content), "value": values}))
        elif len(values) > 4 and all(isinstance(value, dict) for value in values):
            if len({frozenset(value) for value in values}) == 1:
                inner = pd.DataFrame(values)
                yield name, _texts(inner.assign(key=list(content)) if len(inner.columns) < 50 else inner)
        elif (
            all(isinstance(v, (list, dict)) for v in values) and len({len(v) for v in values}) == 1 and len(values) > 1
        ):
            yield name, _texts(pd.DataFrame({key: list(v.values() if isinstance(v, dict) else v)
                                             for key, v in content.items()}))  # fmt: skip
        elif depth:
            for key, value in list(content.items())[:50]:
                yield from _parts(value, f"{name}/{key}" if name else str(key), depth - 1)


def _arrays(file: PublicFile, suffix: str, limit: int) -> Iterator[Table]:
    data = file.read(limit)
    if suffix == ".npy":
        arrays = {"": _array(data, file.size)}
    else:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = {name: (loaded[name], len(loaded[name]) if loaded[name].ndim else 0) for name in loaded.files}
    for name, (array, rows) in arrays.items():
        if array.ndim >= 1 and len(array) > 1 and array.size // len(array) <= 1000:
            flat = array.reshape(len(array), -1)
            shown = flat[: min(MOST_ROWS, max(1, MOST_CELLS // flat.shape[1]))]
            columns = [f"column {place}" for place in range(flat.shape[1])]
            frame = pd.DataFrame(shown.astype(str).astype(object), columns=columns).replace("nan", "")
            matrix = flat if np.issubdtype(flat.dtype, np.number) and flat.shape[1] > 1 else None
            yield Table(f"{file.name}#{name}" if name else file.name, frame, len(shown) < rows, rows, matrix)


def _array(data: bytes, size: int) -> tuple[NDArray[Any], int]:
    """Return the array of an .npy file (its first rows if the data is truncated), and its number of rows."""
    if len(data) >= size:
        array = np.load(io.BytesIO(data), allow_pickle=False)
        return array, len(array) if array.ndim else 0
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    width = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    if by_columns or dtype.hasobject or not shape or width == 0:
        return np.zeros(0), 0
    rows = min((len(data) - stream.tell()) // width, int(shape[0]))
    body = np.frombuffer(data, dtype, count=rows * width // dtype.itemsize, offset=stream.tell())
    return body.reshape(rows, *shape[1:]), int(shape[0])


def _texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return all cells as text; cells of lists and long texts are truncated."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if column.ndim > 1:
            continue
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = column.astype(str).where(column.notna(), "")
        else:
            columns[name] = column.map(lambda cell: "" if cell is None else str(cell)[:_LONGEST_CELL]).fillna("")
            if column.map(lambda cell: isinstance(cell, list)).all():
                columns[f"length of {name}"] = column.map(len).astype(str)
    return pd.DataFrame(columns).replace({"nan": "", "None": "", "<NA>": ""})
