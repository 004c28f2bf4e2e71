"""Write files atomically, so that they are complete whenever the agent is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a text file atomically; its folder is created if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    part.replace(path)


def copy(source: Path, target: Path) -> None:
    """Copy a file atomically; the target's folder is created if needed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, part)
    part.replace(target)
