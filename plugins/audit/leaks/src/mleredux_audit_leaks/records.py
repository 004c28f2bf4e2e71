"""Readers of record formats that need no library: TFRecords, and NMEA sentences of satellite receivers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_LONGEST_CELL = 512


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
