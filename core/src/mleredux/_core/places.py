"""References to local agents, `PLACE[@VERSION][#FOLDER]`, whose place may itself contain these characters."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote

_SPECIAL = re.compile("[%#@\x00-\x1f\x7f\ud800-\udfff]")


def written_place(path: Path) -> str:
    """Return a path in the form that `split_place` reads, whatever characters it contains."""
    return _SPECIAL.sub(lambda match: quote(match[0], safe="", errors="surrogateescape"), str(path))


def split_place(text: str) -> tuple[str, str | None, str]:
    """Return the place, version and folder of a reference: the longest place that exists, else the shortest."""
    ends = [mark.start() for mark in re.finditer("#", text)]
    for end in (len(text), *reversed(ends)):
        whole, folder = text[:end], text[end + 1 :]
        before, at, version = whole.rpartition("@")
        for written, ref in ((whole, None), *([(before, version)] if at and "#" not in version else [])):
            for place in (written, _read(written)):
                if _exists(place):
                    return place, ref, folder
    whole, _, folder = text.partition("#")
    before, at, version = whole.rpartition("@")
    return _read(before if at else whole), version if at else None, folder


def _read(written: str) -> str:
    return unquote(written, errors="surrogateescape")


def _exists(place: str) -> bool:
    try:
        return bool(place) and Path(place).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long, a user without a home directory, a null byte
        return False
