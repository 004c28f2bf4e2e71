"""Safe reading of agents' output files: no links, no blocking, no more than a given number of bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mleredux.plugin.files import FoundFile, IntakeLimits, open_below, walk_files

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Excerpt:
    """The first and last bytes of a file.

    Attributes:
        head: The first bytes; the complete file if nothing was omitted.
        tail: The last bytes, if bytes before them were omitted.
        size: Size of the complete file in bytes.
        modified: Unix time of its last modification.
    """

    head: bytes
    tail: bytes
    size: int
    modified: float

    @property
    def left_out(self) -> int:
        """Number of bytes between head and tail."""
        return self.size - len(self.head) - len(self.tail)


def excerpt(root: Path, name: str | bytes, *, head: int, tail: int = 0) -> Excerpt | None:
    """Read the first and last bytes of a regular file below a folder; return None if there is no such file.

    Args:
        root: The folder; neither it nor any path below it may be a link.
        name: The file's path relative to the folder, with `/`.
        head: Number of bytes from the start.
        tail: Number of bytes from the end. A file of at most `head + tail` bytes is read completely, as head.
    """
    try:
        with open_below(root.parent, f"{root.name}/{os.fsdecode(name)}") as file:
            handle = file.fileno()
            status = os.fstat(handle)
            size = status.st_size
            if size <= head + tail:
                return Excerpt(os.pread(handle, head + tail, 0), b"", size, status.st_mtime)
            return Excerpt(os.pread(handle, head, 0), os.pread(handle, tail, size - tail), size, status.st_mtime)
    except OSError:
        return None


def files_below(root: Path, name: str, limits: IntakeLimits | None = None) -> Iterator[FoundFile]:
    """List all entries below a folder of the run; return none if it, or a parent folder, is a link.

    Args:
        root: The run's folder.
        name: The path relative to the run's folder, with `/`.
        limits: The limits on the listing; None for the intake's defaults.
    """
    place = root
    for part in name.split("/"):
        place = place / part
        if place.is_symlink() or not place.is_dir():
            return iter(())
    return walk_files(place, limits or IntakeLimits())


def text_of(data: bytes) -> str:
    """Decode bytes as text; invalid UTF-8 becomes backslash escapes."""
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def terminal_text(data: bytes) -> str:
    """Return a log as a terminal would show it: without color codes, and with progress bars in their last state."""
    lines = []
    for line in _ESCAPE_SEQUENCE.sub("", text_of(data)).split("\n"):
        states = [state for state in line.split("\r") if state.strip()]
        lines.append(states[-1] if states else "")
    return "\n".join(lines)


def visible(text: str) -> str:
    """Return a text with control and bidirectional characters escaped, so that they can't mislead readers."""
    return _DECEIVING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cut(text: str, limit: int) -> tuple[str, int]:
    """Return the first characters of a text, and the number of omitted ones."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)
