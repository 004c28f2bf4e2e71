"""What builds leave on this machine: images and Python environments, when each was last used, and their removal."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mleredux._core.locations import cache_dir
from mleredux._core.protocols import Discarding

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

IMAGES, ENVIRONMENTS = "images", "environments"


@dataclass(frozen=True)
class Unused:
    """An image or an environment.

    Attributes:
        sandbox: The one that made it.
        name: The image's name, or the environment's folder.
        last_used: In Unix time.
    """

    sandbox: str
    name: str
    last_used: float


def note_use(sandbox: str, image: str) -> None:
    """Note that an image of this program is used now; does nothing if the cache can't be written."""
    with contextlib.suppress(OSError):
        note = _note(sandbox, image)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def unused_since(moment: float) -> list[Unused]:
    """Images and environments last used before that time, the latest first: an image before those below it."""
    images = [Unused(path.parent.name, unquote(path.name), path.stat().st_mtime) for path in _files(f"{IMAGES}/*/*")]
    made = [Unused("process", str(path.parent), path.stat().st_mtime) for path in _files(f"{ENVIRONMENTS}/*/complete")]
    found = [one for one in (*images, *made) if one.last_used < moment]
    return sorted(found, key=lambda one: one.last_used, reverse=True)


def remove(catalogue: Catalogue, one: Unused) -> None:
    """Remove it; an image that a container needs stays in its engine."""
    if one.sandbox == "process":
        shutil.rmtree(one.name, ignore_errors=True)
        Path(f"{one.name}.lock").unlink(missing_ok=True)
        return
    sandbox = catalogue.sandbox(one.sandbox)
    if isinstance(sandbox, Discarding):
        sandbox.discard(one.name)
    _note(one.sandbox, one.name).unlink(missing_ok=True)


def _note(sandbox: str, image: str) -> Path:
    return cache_dir() / IMAGES / sandbox / quote(image, safe="")


def _files(pattern: str) -> list[Path]:
    return [path for path in cache_dir().glob(pattern) if path.is_file()]
