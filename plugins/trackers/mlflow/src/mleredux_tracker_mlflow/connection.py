"""Import MLflow and open a tracking URI without side effects on the current process."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mleredux.plugin.files import FileLock, cache_dir

# These are set before the import, because MLflow would send telemetry otherwise. Timeouts are shorter than MLflow's own
# four minutes per request, because a run may wait at its end; stdout is reserved for `--json`; a redirect would send
# the server's credentials elsewhere. The user's own settings are not overwritten.
_DEFAULTS = {
    "MLFLOW_ALLOW_HTTP_REDIRECTS": "false",
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
    """Return a client for a tracking URI without changing MLflow's global state in this process."""
    if uri.startswith(("http:", "https:")):
        return MlflowClient(uri, uri)
    with _opening(uri):  # creating the client opens the store
        return MlflowClient(uri, uri)


def unanswered(error: BaseException) -> bool:
    """Return whether the error means that the server did not respond, or not in time."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ConnectionError, Timeout)):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def be_quiet_here() -> None:
    """Drop log records of MLflow and its libraries in this thread, because each error is reported once, in one
    sentence."""
    quiet = _Quiet(threading.get_ident())
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        for place in (logger, *logger.handlers):  # a logger's filters don't apply to records of its child loggers
            place.addFilter(quiet)


@contextmanager
def _opening(uri: str) -> Iterator[None]:
    """Let one process at a time open a database, because MLflow then creates its tables, and two processes would
    collide."""
    lock = FileLock(opening_lock(uri))
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=True)
    except OSError:
        pass  # without a cache folder there is no lock
    try:
        yield
    finally:
        lock.release()


def opening_lock(uri: str) -> Path:
    """Return the file that is locked while a database is opened."""
    return cache_dir() / f"mlflow-{hashlib.sha256(uri.encode()).hexdigest()[:16]}.lock"


class _Quiet(logging.Filter):
    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread or record.name.startswith("mleredux")
