"""`mlflow.json` in a run's directory: the id of the MLflow run and the sent files, for each MLflow store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.files import FileLock, write_atomically

from mleredux_tracker_mlflow.masks import masked_text

FILE = "mlflow.json"
_LOCK = ".mlflow.lock"


@dataclass
class Sent:
    """The record of a run in one MLflow store.

    Attributes:
        mlflow_run_id: Id of the MLflow run.
        experiment_id: Id of the MLflow experiment.
        files: Hashes of the sent files by path.
    """

    mlflow_run_id: str | None = None
    experiment_id: str | None = None
    files: dict[str, str] = field(default_factory=dict)


def read_sent(folder: Path, uri: str) -> Sent:
    """Read the record for an MLflow store; empty if the file is missing or damaged, in which case MLflow itself is
    queried."""
    entry = _read(folder).get(_name(uri))
    if not isinstance(entry, dict):
        return Sent()
    run_id, experiment_id, files = (entry.get(item.name) for item in fields(Sent))
    return Sent(
        run_id if isinstance(run_id, str) else None,
        experiment_id if isinstance(experiment_id, str) else None,
        {str(path): str(digest) for path, digest in files.items()} if isinstance(files, dict) else {},
    )


def all_sent(folder: Path) -> dict[str, Sent]:
    """Read the records for all MLflow stores by their tracking URIs, without user and password."""
    return {uri: sent for uri in _read(folder) if (sent := read_sent(folder, uri)).mlflow_run_id}


def write_sent(folder: Path, uri: str, sent: Sent) -> None:
    """Store the record, in addition to those for other MLflow stores.

    Raises:
        MlereduxError: The run's directory cannot be written.
    """
    content = {**_read(folder), _name(uri): asdict(sent)}
    with _writing(folder):
        write_atomically(folder / FILE, json.dumps(content, indent=1) + "\n")


@contextmanager
def sole_sender(folder: Path) -> Iterator[None]:
    """Let one process or thread at a time send a run, so that it never results in two MLflow runs.

    Raises:
        MlereduxError: Another process or thread is sending it, or the run's directory cannot be written.
    """
    lock = FileLock(folder / _LOCK)
    with _writing(folder):
        free = lock.acquire()
    if not free:
        raise MlereduxError(f"Run {folder.name} is being sent to MLflow by another process.", hint="Try again later.")
    try:
        yield
    finally:
        lock.release()


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _name(uri: str) -> str:
    """Return a tracking URI without user and password; URIs that differ only in these denote the same store."""
    shown = masked_text(uri.rstrip("/"))
    # The truncated part of a long URI may be the only part that distinguishes it from another.
    return shown if len(shown) <= 200 else f"{shown[:180]}…{hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def _writing(folder: Path) -> AbstractContextManager[None]:
    """Explain errors of writing to a run's directory."""
    return file_errors(MlereduxError, f"Cannot write the MLflow record to {folder}", "Check its permissions.")
