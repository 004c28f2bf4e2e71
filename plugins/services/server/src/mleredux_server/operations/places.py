"""Messages for users of the server, without the paths of the server's folders, which only its log contains."""

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
"""Paths with fewer parts than this are not hidden: `/tmp` and `/usr` are on every machine, and in agents' messages
too."""


def without_places(text: str | None, *folders: Path | None) -> str | None:
    """Replace folders on the server in a message; names of files in them are kept.

    Args:
        folders: Folders to hide, in addition to those of the server's user, caches, temporary files and programs.
    """
    if text is None or "/" not in text:
        return text
    for folder in sorted(places(*folders), key=len, reverse=True):
        text = re.sub(rf"{re.escape(folder)}(?![\w-]|\.\w)", HIDDEN, text)
    return text


def places(*folders: Path | None) -> set[str]:
    """Return the paths to hide: of these folders, with and without links resolved, and those of the server's user."""
    return {*_own(), *(str(path) for folder in folders if folder for path in (folder.absolute(), folder.resolve()))}


def hide_folders(*folders: Path | None) -> Callable[[str], str]:
    """Return a function that replaces folders on the server in the text of an event, like `without_places`."""
    return lambda text: without_places(text, *folders) or ""


@cache
def _own() -> frozenset[str]:
    usual = {Path(tempfile.gettempdir()), Path(sys.prefix), Path(sys.base_prefix)}
    folders = {Path.home(), cache_dir(), *(path for path in usual if len(path.parts) > _SHORT)}
    return frozenset(str(path) for path in folders if len(path.parts) > 1)
