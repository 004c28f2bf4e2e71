"""Images and Python environments left by builds: when each was last used, and how to remove them."""

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
        sandbox: The sandbox that created it.
        name: The image's name, or the environment's folder.
        last_used: The time of the last use, as Unix time.
    """

    sandbox: str
    name: str
    last_used: float


def note_use(sandbox: str, image: str) -> None:
    """Record that this program uses an image now; do nothing if the cache can't be written."""
    with contextlib.suppress(OSError):
        note = _note(sandbox, image)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def unused_since(moment: float) -> list[Unused]:
    """Return images and environments last used before this time, latest first; images precede their bases."""
    images = [Unused(path.parent.name, unquote(path.name), path.stat().st_mtime) for path in _files(f"{IMAGES}/*/*")]
    complete = _files(f"{ENVIRONMENTS}/*/complete")
    environments = [Unused("process", str(path.parent), path.stat().st_mtime) for path in complete]
    unused = [item for item in (*images, *environments) if item.last_used < moment]
    return sorted(unused, key=lambda item: item.last_used, reverse=True)


def remove(catalogue: Catalogue, unused: Unused) -> None:
    """Remove an image or environment; an image that a container still needs stays in its engine."""
    if unused.sandbox == "process":
        shutil.rmtree(unused.name, ignore_errors=True)
        Path(f"{unused.name}.lock").unlink(missing_ok=True)
        return
    sandbox = catalogue.sandbox(unused.sandbox)
    if isinstance(sandbox, Discarding):
        sandbox.discard(unused.name)
    _note(unused.sandbox, unused.name).unlink(missing_ok=True)


def _note(sandbox: str, image: str) -> Path:
    return cache_dir() / IMAGES / sandbox / quote(image, safe="")


def _files(pattern: str) -> list[Path]:
    return [path for path in cache_dir().glob(pattern) if path.is_file()]
