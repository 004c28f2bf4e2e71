"""Files of a run that are sent to MLflow as artifacts: those in its manifest, within limits; links are not followed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from mleredux.models import Artifact
from mleredux.plugin.files import open_below
from mleredux.plugin.tracker import Run

from mleredux_tracker_mlflow.facts import has_secret_options

FIRST = ("report.html", "rollout.json", "report.json", "scores.json", "events.jsonl", "run.json")
MAX_FILES = 500
_TIMES_IN_ALL = 20
"""The limit on all files together, as a multiple of the limit on one file."""
_PART = re.compile(r"(?!\.+$)[\w .+=,@()~\[\]{}!&'-]{1,200}")
"""Names that MLflow's servers store unchanged; `#`, `?`, `%` and similar characters would change the name."""


def choose(run: Run, artifact_mb: float) -> tuple[list[Artifact], int]:
    """Return the files to send, the most informative first, and the number of omitted files in the manifest."""
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
    """Send the files that have not been sent yet, and record each in `sent`.

    Args:
        sent: Hashes of the sent versions by path.
        upload: Called with a file and the artifact's folder (empty for the root).

    Returns:
        The number of files that could not be read, or no longer match the manifest.
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
            except OSError:  # deleted, or replaced by a link: agents are hostile
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
