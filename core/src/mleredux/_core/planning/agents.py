"""Agents as users of this machine name them: by id, by reference, or by the path of a script or folder."""

from __future__ import annotations

import re
from pathlib import Path

from mleredux._core.places import split_place
from mleredux._core.plugins import Catalogue
from mleredux.errors import NotFound

SCHEME = "repo:"
"""The scheme of references to scripts, folders and repositories."""
SCRIPTS = (".py", ".ipynb", ".sh")
_REMOTE = re.compile(r"^((https|http|ssh|git|file)://|[\w.-]+@[\w.-]+:[^/])")


def looks_like_path(name: str) -> bool:
    """Whether an agent's name can only be meant as the path of a script or folder."""
    return name.startswith((".", "/", "~")) or Path(name).suffix in SCRIPTS or ("/" in name and ":" not in name)


def agent_reference(catalogue: Catalogue, name: str) -> str:
    """The reference of an agent that a user names: paths and URLs of repositories get a scheme.

    Raises:
        NotFound: There is no such file or folder.
    """
    if name in catalogue.entries("agents"):
        return name
    if _REMOTE.match(name):
        return SCHEME + name
    place = Path(split_place(name)[0]).expanduser()
    if place.exists() and (":" not in name or looks_like_path(name)):
        return SCHEME + name
    if ":" in name and not name.startswith((".", "/", "~")):
        return name
    if looks_like_path(name):
        raise NotFound(
            f"There is no agent {name!r}, and no such file or folder in {Path.cwd()}.",
            hint="Give the path of a script, a notebook or a folder, or see `mleredux list agents`.",
        )
    return name
