"""Importing MLflow, and opening what a tracking URI names, so that neither harms the process they happen in."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mleredux.plugin.files import FileLock, cache_dir

# Before the import: MLflow would report its use to its makers otherwise. Patience is less than MLflow's own, four
# minutes for each request, because a run may wait at its end; and stdout belongs to `--json`. What the user has set is
# left alone.
_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)

from mlflow.entities import Metric, Param, RunTag  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from requests.exceptions import ConnectionError, Timeout  # noqa: E402

__all__ = [
    "Metric",
    "MlflowClient",
    "MlflowException",
    "Param",
    "RunTag",
    "be_quiet_here",
    "connect",
    "opening_lock",
    "unanswered",
]
_TALKATIVE = ("mlflow", "alembic", "alembic.runtime.migration", "urllib3.connectionpool", "urllib3.util.retry")


def connect(uri: str) -> MlflowClient:
    """A client of one MLflow, without touching what the rest of the process may do with MLflow."""
    if uri.startswith(("http:", "https:")):
        return MlflowClient(uri, uri)
    with _opening(uri):  # making the client opens it
        return MlflowClient(uri, uri)


def unanswered(error: BaseException) -> bool:
    """Whether it came about because nothing answered, or not in time."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ConnectionError, Timeout)):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def be_quiet_here() -> None:
    """Drop what MLflow and the libraries below it log in this thread: what is wrong is told once, in one sentence."""
    quiet = _Quiet(threading.get_ident())
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        for place in (logger, *logger.handlers):  # a logger's filters don't see what loggers below it say
            place.addFilter(quiet)


@contextmanager
def _opening(uri: str) -> Iterator[None]:
    """Let one process at a time open a database: MLflow makes its tables then, and two at once break each other's."""
    lock = FileLock(opening_lock(uri))
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=True)
    except OSError:
        pass  # without a cache folder of one's own, MLflow is on its own too
    try:
        yield
    finally:
        lock.release()


def opening_lock(uri: str) -> Path:
    """The file that is locked while a database is opened."""
    return cache_dir() / f"mlflow-{hashlib.sha256(uri.encode()).hexdigest()[:16]}.lock"


class _Quiet(logging.Filter):
    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread or record.name.startswith("mleredux")
