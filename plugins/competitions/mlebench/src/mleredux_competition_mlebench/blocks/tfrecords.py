"""Reading TFRecord files without TensorFlow, limited to finding a bytes feature in every record.

Format: per record a little-endian length (8 bytes), its checksum (4), a `tf.train.Example` message, its checksum (4);
see https://www.tensorflow.org/tutorials/load_data/tfrecord and the encoding of protocol buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from mleredux.errors import DataError

_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


def bytes_feature(path: Path, name: str) -> list[str]:
    """Return the first value of a bytes feature in every record, as text.

    Raises:
        DataError: The file is truncated, or a record lacks the feature.
    """
    try:
        return [_feature(record, name.encode()).decode("utf-8") for record in _records(path)]
    except (LookupError, struct.error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path.name} is not a valid TFRecord file whose records have {name} ({type(error).__name__}).",
            hint="Download it again; it may be truncated.",
        ) from error


def _records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(12):
            (length,) = struct.unpack("<Q", head[:8])
            record = file.read(length)
            if len(record) < length or len(file.read(4)) < 4:
                raise LookupError("truncated record")
            yield record


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each length-delimited field of a message; others are skipped."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag & 7 == _LENGTH_DELIMITED:
            length, place = _varint(message, place)
            if place + length > len(message):
                raise LookupError("field longer than its message")
            yield tag >> 3, message[place : place + length]
            place += length
        elif tag & 7 in _FIXED:
            place += _FIXED[tag & 7]
        else:
            _, place = _varint(message, place)


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _feature(record: bytes, name: bytes) -> bytes:
    """Return the values: Example.features (1) → map entries (1) with key (1), value (2) → bytes_list (1) → values."""
    for _, features in _fields(record):
        for _, entry in _fields(features):
            parts = dict(_fields(entry))
            if parts.get(1) == name:
                return dict(_fields(dict(_fields(parts[2]))[1]))[1]
    raise LookupError(name)
