"""Last stage: artifacts of plugins, and the manifest of all stored files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from mleredux._core.masks import Mask
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run
from mleredux._core.store.files import write_atomically
from mleredux._core.store.sparse import write_pages
from mleredux._core.submissions.files import open_regular
from mleredux._core.submissions.intake import HARD_LINKED, IntakeLimits, hash_regular, media_type, take, walk
from mleredux.errors import one_line
from mleredux.models import Artifact, Manifest
from mleredux.models.events import Warned
from mleredux.models.paths import readable

PRODUCERS = ("mleredux_produce_artifacts", "mleredux_produce_reports")
"""The hook that creates artifacts, and a former one that is called after it."""
_OWN_FOLDERS = ("logs", "submissions", "task", "attempts")
_AGENT_FOLDERS = ("output", "attempts")
_STILL_WRITTEN = "events.jsonl"
_OWN_FILES = ("run.json", _STILL_WRITTEN, "report.json", "scores.json", "grades.json")
_MASKED_FOLDERS = ("output", "logs", "submissions", "attempts", "llm")
_BLOCK = 1 << 20
_ALL = IntakeLimits(files=1 << 40, file_bytes=64 << 30, total_bytes=1 << 60)


def produce(run: Run, catalogue: Catalogue) -> Manifest:
    """Let plugins create artifacts, then write `artifacts.json`. A plugin that fails is recorded as an event."""
    produced: list[Artifact] = []
    # As pluggy calls them: `tryfirst` first.
    implementations = [item for hook in PRODUCERS for item in reversed(catalogue.hook(hook).get_hookimpls())]
    for implementation in sorted(implementations, key=lambda item: "artifacts" in item.argnames):
        name = implementation.plugin_name
        arguments = {"run": run, "artifacts": tuple(produced)}
        try:
            returned = implementation.function(*(arguments[key] for key in implementation.argnames)) or ()
            produced += [_completed(run, artifact, name) for artifact in cast("Iterable[Artifact]", returned)]
        except Exception as error:  # a plugin may raise anything; the others still run
            run.emit(Warned(plugin=name, message=f"Producing artifacts failed: {one_line(error)}"))
    return write_manifest(run, produced)


def write_manifest(run: Run, produced: Iterable[Artifact] = ()) -> Manifest:
    """List every file of the run with its hash: mleredux's, the plugins', and the agent's within the limits."""
    artifacts = {artifact.path: artifact for artifact in produced}
    left_out: list[dict[str, str]] = []
    for name in _OWN_FILES:
        if (run.path / name).is_file():
            artifacts.setdefault(name, _completed(run, Artifact(path=name, producer="mleredux"), "mleredux"))
    for folder in (*_OWN_FOLDERS, "output"):
        producer = "agent" if folder in _AGENT_FOLDERS else "mleredux"
        if (run.path / folder).is_dir():
            taken, rest = take(run.path / folder, f"{folder}/", producer, IntakeLimits())
            for artifact in taken:
                artifacts.setdefault(artifact.path, artifact)
            left_out += [item for item in rest if item["path"] != "task/data"]
    manifest = Manifest(
        run=run.id, artifacts=tuple(artifacts[path] for path in sorted(artifacts)), left_out=tuple(left_out)
    )
    run.log.check()
    write_atomically(run.path / "artifacts.json", manifest.model_dump_json(indent=1) + "\n")
    return manifest


def add_artifact(run: Run, artifact: Artifact) -> None:
    """Add an artifact of a finished run to the manifest, replacing any earlier entry with its path.

    Args:
        run: The finished run.
        artifact: The artifact, whose `path` is relative to the run directory.
    """
    manifest = run.manifest or Manifest(run=run.id)
    kept = [known for known in manifest.artifacts if known.path != artifact.path]
    listed = sorted([*kept, _completed(run, artifact, artifact.producer)], key=lambda known: known.path)
    changed = manifest.model_copy(update={"artifacts": tuple(listed)})
    write_atomically(run.path / "artifacts.json", changed.model_dump_json(indent=1) + "\n")


def mask_secrets(run: Run, values: Iterable[str]) -> int:
    """Mask secret values in the content of the agent's files and logs; file names are unchanged.

    Returns:
        The number of files that contained a secret.
    """
    mask = Mask(values)
    changed = 0
    for folder in _MASKED_FOLDERS if mask else ():
        for file in walk(run.path / folder, _ALL):
            if file.reason not in (None, HARD_LINKED) or not file.size:
                continue
            try:
                changed += _mask(run.path / folder / os.fsdecode(file.path), mask)
            except OSError as error:
                message = f"The search for secrets failed: {error.strerror or error}."
                run.emit(Warned(path=f"{folder}/{readable(file.path)}", message=message))
    return changed


def _mask(path: Path, mask: Mask) -> bool:
    """Mask secrets in one file by replacing it, because the old file may have another hard link outside the run."""
    with open_regular(path) as file:

        def read(offset: int, most: int) -> bytes:
            return os.pread(file.fileno(), most, offset)

        places = range(0, os.fstat(file.fileno()).st_size, _BLOCK)
        if not any(mask.finds(read(place, _BLOCK + mask.reach)) for place in places):
            return False
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".masking-")
        with os.fdopen(handle, "wb") as masked:
            for place in places:
                write_pages(mask.read(read, place, _BLOCK), place, handle)
            masked.truncate(os.fstat(file.fileno()).st_size)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    return True


def _completed(run: Run, artifact: Artifact, producer: str) -> Artifact:
    """Return the artifact with size and hash; a plugin may list only regular files of the run's own directory."""
    path = run.path / artifact.path
    if not path.resolve().is_relative_to(run.path.resolve()):
        raise ValueError(f"{artifact.path} is outside the run")
    known = artifact.media_type != "application/octet-stream"
    return artifact.model_copy(
        update={
            "size": path.stat().st_size,
            "sha256": None if artifact.path == _STILL_WRITTEN else hash_regular(path),
            "media_type": artifact.media_type if known else media_type(artifact.path),
            "producer": artifact.producer or producer,
        }
    )
