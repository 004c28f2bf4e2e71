"""Messages for users of the server, without the paths of its folders: these are for its administrator, in the log."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mleredux.plugin.files import cache_dir

HIDDEN = "…"
_SHORT = 2
"""`/tmp` and `/usr` are on every machine, and in agents' messages too."""


def without_places(text: str | None, *folders: Path | None) -> str | None:
    """Replace folders of the server in a message; what lies in them keeps its name.

    Args:
        folders: Besides the folders of its user, its caches, its temporary files and its programs.
    """
    if text is None or "/" not in text:
        return text
    for folder in sorted(places(*folders), key=len, reverse=True):
        text = re.sub(rf"{re.escape(folder)}(?![\w-]|\.\w)", HIDDEN, text)
    return text


def places(*folders: Path | None) -> set[str]:
    """Return the paths that are hidden: of these folders, with and without links, and those of the server's user."""
    return {*_own(), *(str(path) for one in folders if one for path in (one.absolute(), one.resolve()))}


def hiding(*folders: Path | None) -> Callable[[str], str]:
    """Return a function that replaces folders of the server in the text of an event, as `without_places`."""
    return lambda text: without_places(text, *folders) or ""


@cache
def _own() -> frozenset[str]:
    usual = {Path(tempfile.gettempdir()), Path(sys.prefix), Path(sys.base_prefix)}
    found = {Path.home(), cache_dir(), *(path for path in usual if len(path.parts) > _SHORT)}
    return frozenset(str(path) for path in found if len(path.parts) > 1)
