"""Diffs of code written by agents, limited in size and to regular files."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from mleredux.plugin.files import IntakeLimits, readable_path
from mleredux_artifact_reports.shared import excerpt, files_below, text_of

_FILES = 60
_BYTES = 200_000
_LINES = 1_500
_CONTEXT = 4
_KINDS = {"+": "ins", "-": "del", "@": "b"}


@dataclass(frozen=True)
class FileDiff:
    """A changed file: its lines with the HTML element of each, and the numbers of added and removed lines."""

    path: str
    lines: list[tuple[str, str]]
    added: int
    removed: int
    left_out: int
    why: str = ""


def diff_folders(before: Path | None, after: Path) -> list[FileDiff]:
    """Return the files that differ between two folders; None and missing folders count as empty."""
    old, new = _files(before), _files(after)
    diffs: list[FileDiff] = []
    for path in sorted(old.keys() | new.keys()):
        if len(diffs) >= _FILES:
            break
        first, second = old.get(path, b""), new.get(path, b"")
        if first is None or second is None:
            if first is not second:
                diffs.append(FileDiff(readable_path(path), [], 0, 0, 0, "too large or not text"))
        elif first != second:
            diffs.append(diff_texts(readable_path(path), text_of(first), text_of(second)))
    return diffs


def diff_texts(path: str, before: str, after: str) -> FileDiff:
    """Return the diff of two texts."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    shown = [(_KINDS.get(line[:1], "span"), line) for line in lines[:_LINES]]
    return FileDiff(path, shown, added, removed, len(lines) - len(shown))


def _files(folder: Path | None) -> dict[bytes, bytes | None]:
    """Return the files of a folder by path, with None for those that are too large or not text."""
    files: dict[bytes, bytes | None] = {}
    if folder is None or not folder.is_dir():
        return files
    for file in files_below(folder.parent, folder.name, IntakeLimits(files=_FILES * 4, depth=8)):
        if file.reason is None and b"__pycache__" not in file.path:
            read = excerpt(folder, file.path, head=_BYTES) if file.size <= _BYTES else None
            files[file.path] = read.head if read and b"\0" not in read.head else None
    return files
