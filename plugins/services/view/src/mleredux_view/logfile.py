"""Logs of any size by line: an index of line starts, built at disk speed, grows with the file."""

from __future__ import annotations

import bisect
import os
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mleredux.plugin.files import open_below

_BLOCK = 256 << 10
_KEPT = 64
_LONGEST = 4_000
_ANY_HOLES = 1 << 28
"""The largest size in bytes up to which holes are read, too."""
TRACEBACK = b"Traceback (most recent call last)"
_ERROR = re.compile(rb"^[ \t]*(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception)\b|^Killed", re.MULTILINE)


class Line(NamedTuple):
    """A line: its number from 1, its bytes, and the number of omitted bytes."""

    number: int
    data: bytes
    left_out: int


class LogFile:
    """A file that is read by lines.

    Args:
        root, name: The run's folder and the path relative to it; links are not followed.

    Attributes:
        size: Number of bytes that are indexed.
        error: Number of the first line with a traceback or, without tracebacks, with another error; None if there is
            none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name, self._lock = root, name, threading.Lock()
        self._forget()

    def refresh(self) -> None:
        """Index the data appended since the last call.

        Raises:
            OSError: The regular file does not exist.
        """
        with self._lock, open_below(self._root, self._name) as file:
            size = data_end(file)
            if size < self.size:
                self._forget()
            file.seek(self.size)
            while block := file.read(min(_BLOCK, size - self.size)):
                self._take(block)

    @property
    def lines(self) -> int:
        """Return the number of lines, of which the last may be incomplete."""
        return self._newlines + (not self._whole)

    @property
    def error(self) -> int | None:
        """Return the number of the first line with an error, as described in the class."""
        return self._traceback or self._other_error

    def read(self, first: int, count: int) -> list[Line]:
        """Return lines starting from a number."""
        lines: list[Line] = []
        with open_below(self._root, self._name) as file:
            number = self._seek(file, first)
            while len(lines) < count and file.tell() < self.size and (data := file.readline(_LONGEST)):
                left_out = 0 if data.endswith(b"\n") or len(data) < _LONGEST else _discard_line(file, self.size)
                if number >= first:
                    lines.append(Line(number, data.rstrip(b"\r\n"), left_out))
                number += 1
        return lines

    def search(self, text: bytes, first: int) -> int | None:
        """Return the number of the next line that contains text, ignoring case, starting from a number; None if there
        is none."""
        text = text.lower()
        with open_below(self._root, self._name) as file:
            number, rest = self._seek(file, first), b""
            while file.tell() < self.size and (piece := file.read(_BLOCK)):
                data, place = rest + piece.lower(), -1
                while (place := data.find(text, place + 1)) >= 0:
                    if (at := number + data.count(b"\n", 0, place)) >= first:
                        return at
                end = max(data.rfind(b"\n") + 1, len(data) - len(text) + 1)
                number, rest = number + data.count(b"\n", 0, end), data[end:]
        return None

    def _seek(self, file: BinaryIO, first: int) -> int:
        """Seek to the start of the last indexed line up to a number, and return that line's number."""
        number, offset = self._starts[bisect.bisect_right(self._starts, (first, self.size)) - 1]
        file.seek(offset)
        return number

    def _forget(self) -> None:
        self.size, self._newlines, self._whole, self._tail = 0, 0, True, b""
        self._traceback: int | None = None
        self._other_error: int | None = None
        self._starts: list[tuple[int, int]] = [(1, 0)]
        """Number and offset of the first line that begins in each block."""

    def _take(self, block: bytes) -> None:
        if self._traceback is None and (place := (self._tail + block).find(TRACEBACK)) >= 0:
            place -= len(self._tail)
            self._traceback = self._newlines + block.count(b"\n", 0, max(0, place)) + 1
        hinted = self._other_error is None and any(name in block for name in (b"Error", b"Exception", b"Killed"))
        if hinted and (match := _ERROR.search(block)):
            self._other_error = self._newlines + block.count(b"\n", 0, match.start()) + 1
        if (place := block.find(b"\n")) >= 0:
            self._starts.append((self._newlines + 2, self.size + place + 1))
        self._tail = block[-len(TRACEBACK) + 1 :]
        self._newlines += block.count(b"\n")
        self._whole = block.endswith(b"\n")
        self.size += len(block)


def data_end(file: BinaryIO) -> int:
    """Return the size of a file or, if it is large, where its first hole begins: reading holes only takes time."""
    size = file.seek(0, 2)
    return size if size <= _ANY_HOLES else min(size, file.seek(0, os.SEEK_HOLE))


def _discard_line(file: BinaryIO, end: int) -> int:
    discarded = 0
    while file.tell() < end and (piece := file.readline(_BLOCK)):
        discarded += len(piece)
        if piece.endswith(b"\n"):
            break
    return discarded


@lru_cache(_KEPT)
def _known_log(root: Path, name: str) -> LogFile:
    return LogFile(root, name)


def log_of(root: Path, name: str) -> LogFile:
    """Return the log with its index up to date.

    Raises:
        OSError: The regular file does not exist.
    """
    log = _known_log(root, name)
    log.refresh()
    return log
