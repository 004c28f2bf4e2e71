"""Files of a run that go to MLflow as artifacts: those of its manifest, with limits, and no link is followed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from mleredux.plugin.files import open_below
from mleredux.plugin.tracker import Artifact, Run

from mleredux_tracker_mlflow.facts import has_secret_options

FIRST = ("report.html", "rollout.json", "report.json", "scores.json", "events.jsonl", "run.json")
MAX_FILES = 500
_TIMES_IN_ALL = 20
"""All files together may be so many times as large as the largest one."""
_PART = re.compile(r"(?!\.+$)[\w .+=,@()~\[\]{}!&'-]{1,200}")
"""What MLflow's servers take in a name unchanged: `#`, `?`, `%` and the like would make another name of it."""


def choose(run: Run, artifact_mb: float) -> tuple[list[Artifact], int]:
    """Files to send, the telling ones first, and how many of the manifest are left out."""
    manifest = run.manifest
    listed = list(manifest.artifacts) if manifest else []
    places = {name: place for place, name in enumerate(FIRST)}
    listed.sort(key=lambda artifact: (places.get(artifact.path, len(FIRST)), artifact.path))
    largest = artifact_mb * 1e6
    left = largest * _TIMES_IN_ALL
    taken: list[Artifact] = []
    hidden = {"run.json"} if has_secret_options(run) else set()
    for artifact in listed:
        fits = artifact.size <= min(largest, left) and largest > 0
        if fits and len(taken) < MAX_FILES and artifact.path not in hidden and _nameable(artifact.path):
            taken.append(artifact)
            left -= artifact.size
    return taken, len(listed) - len(taken)


def send_files(
    run: Run, chosen: Iterable[Artifact], sent: dict[str, str], upload: Callable[[Path, str], None], artifact_mb: float
) -> int:
    """Send what was not sent yet, noting each in `sent`.

    Args:
        sent: Paths and the hashes they were sent with.
        upload: Takes a file, and the folder of the artifact (empty for the top).

    Returns:
        How many files could not be read, or are no longer what the manifest says.
    """
    missing = 0
    for artifact in chosen:
        version = artifact.sha256 or f"{artifact.size} bytes"
        if sent.get(artifact.path) == version:
            continue
        path = PurePosixPath(artifact.path)
        with tempfile.TemporaryDirectory(prefix="mleredux-mlflow-") as folder:
            copy = Path(folder) / path.name
            try:
                _copy(run.path, artifact.path, copy, int(artifact_mb * 1e6))
            except OSError:  # gone, or a link now: hostile until the last moment
                missing += 1
                continue
            upload(copy, "" if str(path.parent) == "." else str(path.parent))
        sent[artifact.path] = version
    return missing


def _copy(root: Path, name: str, target: Path, largest: int) -> None:
    with open_below(root, name) as source, target.open("wb") as copy:
        if os.fstat(source.fileno()).st_size > largest:
            raise OSError("has grown")
        shutil.copyfileobj(source, copy, 1 << 20)


def _nameable(path: str) -> bool:
    parts = path.split("/")
    return len(path) <= 400 and all(_PART.fullmatch(part) and part == part.strip() for part in parts)
