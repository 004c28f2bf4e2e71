"""Reading what an agent left: never through a link, never waiting, never more than a stated number of bytes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mleredux.plugin.files import FoundFile, IntakeLimits, walk_files

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Excerpt:
    """The first and last bytes of a file.

    Attributes:
        head: The first bytes; the whole file where nothing was left out.
        tail: The last bytes, where some were left out before them.
        size: Bytes of the whole file.
        modified: Unix time of its last change.
    """

    head: bytes
    tail: bytes
    size: int
    modified: float

    @property
    def left_out(self) -> int:
        """Bytes between head and tail."""
        return self.size - len(self.head) - len(self.tail)


def excerpt(root: Path, name: str | bytes, *, head: int, tail: int = 0) -> Excerpt | None:
    """The first and last bytes of a regular file beneath a folder; None where there is no such file.

    Args:
        root: The folder; neither it nor anything below it is followed where it is a link.
        name: The file's path in it, with `/`.
        head: How many of the first bytes.
        tail: How many of the last bytes. A file of at most `head + tail` bytes is read whole, as head.
    """
    handles: list[int] = []
    try:
        handle = os.open(root, _OPEN | os.O_DIRECTORY)
        handles.append(handle)
        *folders, last = os.fsencode(name).split(b"/")
        for folder in folders:
            if folder in (b"", b".", b".."):
                return None
            handle = os.open(folder, _OPEN | os.O_DIRECTORY, dir_fd=handle)
            handles.append(handle)
        handle = os.open(last, _OPEN, dir_fd=handle)
        handles.append(handle)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return None
        size = status.st_size
        if size <= head + tail:
            return Excerpt(os.pread(handle, head + tail, 0), b"", size, status.st_mtime)
        return Excerpt(os.pread(handle, head, 0), os.pread(handle, tail, size - tail), size, status.st_mtime)
    except OSError:
        return None
    finally:
        for handle in handles:
            with suppress(OSError):
                os.close(handle)


def files_below(root: Path, name: str, limits: IntakeLimits | None = None) -> Iterator[FoundFile]:
    """All things below a folder of the run; nothing where it, or a folder on the way to it, is a link.

    Args:
        root: The run's folder.
        name: The path in it, with `/`.
        limits: What is taken; the intake's own limits where None.
    """
    place = root
    for part in name.split("/"):
        place = place / part
        if place.is_symlink() or not place.is_dir():
            return iter(())
    return walk_files(place, limits or IntakeLimits())


def text_of(data: bytes) -> str:
    """Bytes as text; what is not UTF-8 as backslash escapes."""
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def terminal_text(data: bytes) -> str:
    """What a terminal would show of a log: no colour codes, of a progress bar its last state."""
    lines = []
    for line in _ESCAPE_SEQUENCE.sub("", text_of(data)).split("\n"):
        states = [state for state in line.split("\r") if state.strip()]
        lines.append(states[-1] if states else "")
    return "\n".join(lines)


def visible(text: str) -> str:
    """The same text with control and direction-changing characters as escapes, so that they can't deceive."""
    return _DECEIVING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cut(text: str, limit: int) -> tuple[str, int]:
    """The first characters of a text, and how many were left out."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)
