"""Last stage: artifacts of plugins, and the manifest of everything that is kept."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import cast

from mleredux.models import Artifact, Manifest
from mleredux.plugins import Catalogue
from mleredux.store import Run
from mleredux.store.files import write_atomically
from mleredux.submissions.intake import IntakeLimits, hash_regular, media_type, take, walk

_OWN_FOLDERS = ("logs", "submissions", "task", "attempts")
_AGENT_FOLDERS = ("output", "attempts")
_STILL_WRITTEN = "events.jsonl"
_OWN_FILES = ("run.json", _STILL_WRITTEN, "report.json")
_MASK = b"*****"
_MASK_BYTES = 256 << 20


def produce(run: Run, catalogue: Catalogue) -> Manifest:
    """Let plugins make artifacts, then write `artifacts.json`. A plugin that fails is an event, never an end."""
    made: list[Artifact] = []
    caller = catalogue.hook("mleredux_produce_artifacts")
    for implementation in caller.get_hookimpls():
        name = implementation.plugin_name
        try:
            artifacts = cast("Iterable[Artifact] | None", implementation.function(run=run)) or ()
            made += [_completed(run, artifact, name) for artifact in artifacts]
        except Exception as error:
            run.emit("warning", plugin=name, message=f"Producing artifacts failed: {type(error).__name__}: {error}")
    return write_manifest(run, made)


def write_manifest(run: Run, made: Iterable[Artifact] = ()) -> Manifest:
    """List every file of the run with its hash: ours, the plugins', and the agent's as far as the limits go."""
    artifacts = {artifact.path: artifact for artifact in made}
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
        run=run.id,
        artifacts=tuple(artifacts[path] for path in sorted(artifacts)),
        left_out=tuple(left_out),
    )
    write_atomically(run.path / "artifacts.json", manifest.model_dump_json(indent=1) + "\n")
    return manifest


def mask_secrets(run: Run, values: Iterable[str]) -> int:
    """Replace secret values in everything the agent left and logged.

    Returns:
        How many files held one.
    """
    wanted = sorted({value.encode() for value in values if len(value) >= 6}, key=len, reverse=True)
    changed = 0
    for folder in ("output", "logs", "submissions") if wanted else ():
        for found in walk(run.path / folder):
            path = run.path / folder / os.fsdecode(found.path)
            if found.reason is not None or found.size > _MASK_BYTES:
                continue
            content = path.read_bytes()
            masked = content
            for value in wanted:
                masked = masked.replace(value, _MASK)
            if masked != content:
                write_atomically(path, masked)
                changed += 1
    return changed


def _completed(run: Run, artifact: Artifact, producer: str) -> Artifact:
    """Size and hash filled in; a plugin may name only regular files of the run's own directory."""
    path = run.path / artifact.path
    if not path.resolve().is_relative_to(run.path.resolve()):
        raise ValueError(f"{artifact.path} lies outside the run")
    known = artifact.media_type != "application/octet-stream"
    return artifact.model_copy(
        update={
            "size": path.stat().st_size,
            "sha256": None if artifact.path == _STILL_WRITTEN else hash_regular(path),
            "media_type": artifact.media_type if known else media_type(artifact.path),
            "producer": artifact.producer or producer,
        }
    )
