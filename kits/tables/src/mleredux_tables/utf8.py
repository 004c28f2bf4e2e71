"""Columns of text as bytes, so that millions of cells can be compared, split and numbered without Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_tables.columns import Array

if TYPE_CHECKING:
    import pandas as pd

_WORD = 8
_HASHED = 512
"""Number of bytes of each text that enter its hash; the rest is compared cell by cell."""

_BLOCK = 1 << 15
"""Number of texts to process at once, so that intermediate results stay in the processor's cache."""

_HEAD = 3 * _WORD
"""Number of bytes of each text that are gathered for comparison."""

_HEAD_MASKS = np.array(
    [[(1 << 8 * count) - 1 >> 64 * word & (1 << 64) - 1 for word in range(3)] for count in range(_HEAD + 1)],
    dtype=np.uint64,
)
"""Masks that keep a given number of the first 24 bytes, shape (25, 3)."""

_BOTH, _ALL_FOUR = 0x0101, 0x01010101
"""Two and four bytes of True, read as one number."""

_LOWER = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Utf8:
    """Texts in UTF-8, in one block of memory.

    Attributes:
        data: All bytes, followed by 32 more, shape (bytes,).
        starts: Where each text starts, in ascending order, shape (texts,).
        lengths: The number of bytes of each text, shape (texts,).
    """

    data: Array
    starts: Array
    lengths: Array

    @classmethod
    def of(cls, data: Array | bytes, starts: Array, lengths: Array) -> Utf8:
        """Return texts in memory that may end where the last text ends."""
        content = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
        padded = np.zeros(len(content) + _HEAD + _WORD, dtype=np.uint8)
        padded[: len(content)] = content
        return cls(padded, starts, lengths)

    @classmethod
    def of_cells(cls, cells: Sequence[str] | Array) -> Utf8:
        """Return the texts of a sequence of str."""
        joined = np.frombuffer("\0".join(cells).encode("utf-8", "surrogatepass"), dtype=np.uint8)
        ends = np.flatnonzero(joined == 0)
        if len(ends) == len(cells) - 1:
            ends = np.append(ends, len(joined)) - np.arange(len(cells))
            return cls.of(joined[joined != 0], np.append(0, ends[:-1]), np.diff(ends, prepend=0))
        pieces = [cell.encode("utf-8", "surrogatepass") for cell in cells]  # some have such a character themselves
        lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        return cls.of(b"".join(pieces), np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def of_column(cls, column: pd.Series[Any]) -> Utf8:
        """Return the texts of a column of text; a missing cell becomes the empty text."""
        texts = _arrow_memory(column)
        if texts is not None:
            return texts
        gaps = np.asarray(column.isna(), dtype=bool)
        cells = column.to_numpy(dtype=object)
        return cls.of_cells(np.where(gaps, "", cells) if gaps.any() else cells)

    def __len__(self) -> int:
        return len(self.starts)

    def __add__(self, more: Utf8) -> Utf8:
        """Return the texts of both."""
        return Utf8.joined([self, more])

    @classmethod
    def joined(cls, parts: Sequence[Utf8]) -> Utf8:
        """Return the texts of all parts, of which there is at least one."""
        offsets = np.cumsum([0, *(len(part.data) for part in parts[:-1])])
        return cls(
            np.concatenate([part.data for part in parts]),
            np.concatenate([part.starts + offset for part, offset in zip(parts, offsets, strict=True)]),
            np.concatenate([part.lengths for part in parts]),
        )

    @property
    def ends(self) -> Array:
        """The position after each text's last byte, shape (texts,)."""
        ends: Array = self.starts + self.lengths
        return ends

    @cached_property
    def ascii(self) -> bool:
        """Whether all bytes are ASCII."""
        return not (self.data >= 0x80).any()

    @cached_property
    def _heads(self) -> Array:
        """The length and the first 24 bytes of each text as numbers, uint64, shape (texts, 4).

        If no text is longer than eight bytes, which is true of most words and numbers, only length and eight bytes,
        shape (texts, 2).
        """
        words = 1 if self.lengths.max(initial=0) <= _WORD else _HEAD // _WORD
        windows = self._windows(f"V{words * _WORD}")
        masks = np.ascontiguousarray(_HEAD_MASKS[: words * _WORD + 1, :words])
        heads = np.empty((len(self), 1 + words), dtype=np.uint64)
        for start in range(0, len(self), _BLOCK):
            part = slice(start, start + _BLOCK)
            heads[part, 0] = self.lengths[part]
            loaded = windows[self.starts[part]].view("<u8").reshape(-1, words)
            heads[part, 1:] = loaded & masks.take(self.lengths[part], axis=0, mode="clip")
        return heads

    def _windows(self, kind: str) -> Array:
        """Return the bytes that start at each position, as one value of this type."""
        size = np.dtype(kind).itemsize
        return np.ndarray((len(self.data) - size + 1,), kind, self.data.data, strides=(1,))

    def _words(self, texts: Array, at: int) -> Array:
        """Return eight bytes of each text as one number, with zeros beyond its end, uint64.

        Args:
            at: The position of the first byte in each text, which must be longer.
        """
        words: Array = self._windows("<u8")[self.starts[texts] + at]
        return words & _HEAD_MASKS[: _WORD + 1, 0].take(self.lengths[texts] - at, mode="clip")

    @cached_property
    def hashes(self) -> Array:
        """Numbers that are equal for equal texts and usually different for others, uint64, shape (texts,)."""
        codes = np.empty(len(self), dtype=np.uint64)
        for start in range(0, len(self), _BLOCK):
            mixed, *words = self._heads[start : start + _BLOCK].T
            for word in words:
                mixed = _mixed(mixed, word)
            lengths = self.lengths[start : start + _BLOCK]
            for at in range(len(words) * _WORD, min(int(lengths.max()), _HASHED), _WORD):
                longer = np.flatnonzero(lengths > at)
                mixed[longer] = _mixed(mixed[longer], self._words(longer + start, at))
            codes[start : start + _BLOCK] = mixed
        return codes

    def equal(self, these: Array, those: Array, other: Utf8 | None = None) -> Array:
        """Return whether texts are equal, pair by pair, shape (pairs,).

        Args:
            those: The same number of texts of the other column (or of this one).
        """
        other = other or self
        same = np.empty(len(these), dtype=bool)
        width = self._heads.shape[1]
        if other._heads.shape[1] != width:  # so that one side has the longer texts
            return (self + other).equal(these, those + len(self))
        for start in range(0, len(these), _BLOCK):
            part = slice(start, start + _BLOCK)
            alike = self._heads.take(these[part], axis=0) == other._heads.take(those[part], axis=0)
            same[part] = alike.view(np.uint16 if width == 2 else np.uint32).ravel() == (
                _BOTH if width == 2 else _ALL_FOUR
            )
        alive = np.flatnonzero(same)
        for at in range(_HEAD, _HASHED, _WORD):
            alive = alive[self.lengths[these[alive]] > at]
            if not len(alive):
                return same
            differ = self._words(these[alive], at) != other._words(those[alive], at)
            same[alive[differ]] = False
            alive = alive[~differ]
        for pair in alive[self.lengths[these[alive]] > _HASHED]:  # these have hundreds of bytes each, so there are few
            same[pair] = self.cell(int(these[pair])) == other.cell(int(those[pair]))
        return same

    def first_equals(self) -> Array:
        """Return for each text the index of the first equal one, shape (texts,)."""
        firsts = first_equals(self.hashes)
        repeats = np.flatnonzero(firsts != np.arange(len(firsts)))
        seen: dict[bytes, int] = {}
        for place in repeats[~self.equal(repeats, firsts[repeats])]:  # hashes may be equal by chance or design
            firsts[place] = seen.setdefault(self.cell(int(place)), int(place))
        return firsts

    def filled(self, gaps: Array, text: bytes) -> Utf8:
        """Return the same texts, with some empty ones (selected by booleans) replaced by another text."""
        added = np.frombuffer(text * int(np.count_nonzero(gaps)), dtype=np.uint8)
        data = np.insert(self.data, np.repeat(self.starts[gaps], len(text)), added)
        lengths = np.where(gaps, len(text), self.lengths)
        return Utf8(data, np.cumsum(lengths) - lengths, lengths)

    def among(self, others: Utf8) -> Array:
        """Return which of the texts are equal to any of the others, booleans, shape (texts,)."""
        present: Array = (others + self).first_equals()[len(others) :] < len(others)
        return present

    def at(self, chosen: Array) -> Utf8:
        """Return some of the texts, in the same memory."""
        return Utf8(self.data, self.starts[chosen], self.lengths[chosen])

    def cell(self, text: int) -> bytes:
        """Return the bytes of one text."""
        start = int(self.starts[text])
        return self.data[start : start + int(self.lengths[text])].tobytes()

    def lowered(self) -> Utf8:
        """Return the texts in lower case, as defined by `str.lower`."""
        if self.ascii:
            return Utf8(_LOWER[self.data], self.starts, self.lengths)
        used = self.data[: int(self.lengths.sum())]
        if (used == 0).any():
            cells = [self.cell(text).decode("utf-8", "surrogatepass").lower() for text in range(len(self))]
            return Utf8.of_cells(cells)
        joined = np.insert(used, self.starts[1:], 0).tobytes().decode("utf-8", "surrogatepass")
        return Utf8.of_cells(joined.lower().split("\0"))

    def subset(self, chosen: Array) -> Utf8:
        """Return some of the texts, copied one by one."""
        starts, lengths = self.starts[chosen], self.lengths[chosen]
        if len(starts) and (starts[1:] == starts[:-1] + lengths[:-1]).all():  # they are already
            return Utf8(self.data[starts[0] : starts[-1] + lengths[-1] + _HEAD + _WORD], starts - starts[0], lengths)
        return Utf8.of(self.data[ranges(starts, lengths)], np.cumsum(lengths) - lengths, lengths)


def first_equals(values: Array) -> Array:
    """Return for each number the index of the first number that is equal or nearly equal to it, shape (n,).

    Args:
        values: uint64, shape (n,).
    """
    packed = sorted_with_places(values)
    bits = np.uint64(max(len(values) - 1, 1).bit_length())
    places = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    packed >>= bits
    begins = np.flatnonzero(np.append(True, packed[1:] != packed[:-1])[: len(packed)])
    firsts = np.empty(len(values), dtype=np.int64)
    firsts[places] = np.repeat(places[begins], np.diff(begins, append=len(packed)))
    return firsts


def sorted_with_places(values: Array) -> Array:
    """Return sorted numbers whose lowest bits, as many as needed, are replaced by their positions.

    NumPy sorts plain numbers several times as fast as it computes an order.

    Args:
        values: uint64, shape (n,).
    """
    bits = np.uint64(max(len(values) - 1, 1).bit_length())
    packed = values >> bits
    packed <<= bits
    packed |= np.arange(len(values), dtype=np.uint64)
    packed.sort()
    return packed


def ranges(starts: Array, lengths: Array) -> Array:
    """Return the integers of many ranges, one range after the other, shape (sum of lengths,)."""
    numbers: Array = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    return numbers


def _mixed(hashes: Array, words: Array) -> Array:
    mixed = (hashes ^ words) * _ODD
    mixed ^= mixed >> np.uint64(29)
    mixed *= _ODD
    return mixed


def _arrow_memory(column: pd.Series[Any]) -> Utf8 | None:
    """Return the memory of a column that pandas stores in Arrow's format, as it does if PyArrow is installed."""
    if getattr(column.dtype, "storage", None) != "pyarrow":
        return None
    held = column.array.__arrow_array__()
    held = held.combine_chunks() if hasattr(held, "combine_chunks") else held
    kinds = {"string": np.int32, "large_string": np.int64}
    memory = held.buffers()
    if str(held.type) not in kinds or memory[1] is None:
        return None
    offsets = np.frombuffer(memory[1], dtype=kinds[str(held.type)])[held.offset : held.offset + len(held) + 1]
    offsets = offsets.astype(np.int64)
    data = np.frombuffer(memory[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    texts = Utf8.of(data, offsets[:-1] - offsets[0], np.diff(offsets))
    if held.null_count:
        gaps = np.asarray(column.isna(), dtype=bool)
        if texts.lengths[gaps].any():  # memory may contain anything there
            texts = Utf8(texts.data, texts.starts, np.where(gaps, 0, texts.lengths)).subset(np.arange(len(texts)))
    return texts
