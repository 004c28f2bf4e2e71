"""Whether anything held out came into an agent's hands: the canary beside the answers, or private files themselves."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from mleredux._core.data.canary import canary
from mleredux._core.store import Run
from mleredux._core.submissions.files import open_regular
from mleredux._core.submissions.intake import HARD_LINKED, IntakeLimits, hash_regular, walk
from mleredux.errors import MlereduxError
from mleredux.models import Evidence
from mleredux.models.paths import readable
from mleredux.models.verdict import SUBMITTED_ANSWERS

_FOLDERS = ("output", "logs", "submissions", "attempts", "llm")
_LIMITS = IntakeLimits(files=20_000, file_bytes=1 << 30, total_bytes=8 << 30)
_NAMED = 20
_FEWEST_BYTES = 64


def exposures(run: Run, private: Path, submission: str = "submission.csv", *, isolated: bool = False) -> list[Evidence]:
    """What shows that the agent read held-out files: one item for each file that it left.

    Args:
        private: The task's private folder.
        submission: Name of the file that is submitted: perfect predictions may equal the answers, so the kind differs.
        isolated: Whether the sandbox kept the agent from the answers: then perfection alone proves nothing.
    """
    try:
        wanted = canary(run.spec.task).encode()
    except MlereduxError as error:  # no salt, no canary: the rest is checked all the same
        wanted = b""
        found = [Evidence(kind="canary", level="suspicious", why=f"The canary could not be looked for: {error}")]
    else:
        found = []
    left = list(_left(run))
    secret = _private_files(private, {size for _, _, size in left})
    for shown, path, size in left:
        with contextlib.suppress(OSError):
            if wanted and _holds(path, wanted):
                why = f"{shown} holds the canary that is next to the answers."
                found.append(Evidence(kind="canary", level="seen", why=why))
            same = secret.get(size)
            if same and (digest := hash_regular(path)) in same:
                why = f"{shown} equals the private file {same[digest]}."
                submitted = shown.startswith("submissions/") or Path(shown).name == submission
                kind = SUBMITTED_ANSWERS if submitted else "private-file"
                level: Literal["seen", "suspicious"] = "suspicious" if submitted and isolated else "seen"
                found.append(Evidence(kind=kind, level=level, why=why))
        if len(found) >= _NAMED:
            break
    return found


def _left(run: Run) -> Iterator[tuple[str, Path, int]]:
    """Everything the agent left and said: its name in the run, its path, its size."""
    for name in _FOLDERS:
        folder = run.path / name
        for item in walk(folder, _LIMITS) if folder.is_dir() else ():
            if item.reason in (None, HARD_LINKED) and item.size:
                yield f"{name}/{readable(item.path)}", folder / os.fsdecode(item.path), item.size


def _private_files(private: Path, sizes: set[int]) -> dict[int, dict[str, str]]:
    """Digests and names of private files of these sizes, by size; tiny ones prove nothing, public ones are known."""
    by_size: dict[int, dict[str, str]] = {}
    for folder, keep in ((private, True), (private.parent / "public", False)):
        for item in walk(folder, _LIMITS):
            if item.reason is not None or item.size not in sizes or item.size < _FEWEST_BYTES:
                continue
            with contextlib.suppress(OSError):
                digest = hash_regular(folder / os.fsdecode(item.path))
                if keep:
                    by_size.setdefault(item.size, {})[digest] = readable(item.path)
                else:
                    by_size.get(item.size, {}).pop(digest, None)
    return by_size


def _holds(path: Path, wanted: bytes) -> bool:
    with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(wanted) >= 0
