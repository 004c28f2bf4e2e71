"""The panel on a run's page that links to its MLflow runs."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

from mleredux.plugin.page import Visit
from mleredux.plugin.tracker import Run

from mleredux_tracker_mlflow.masks import MASK
from mleredux_tracker_mlflow.record import Sent, all_sent


class Place(NamedTuple):
    """An MLflow store that contains the run: its tracking URI, the URL of the run's page if it is a server, its
    files."""

    uri: str
    address: str | None
    run_id: str | None
    files: int


def sent(_visit: Visit, run: Run) -> dict[str, Any] | None:
    """Return the destinations to which the run was sent; None if it was not sent."""
    places = [
        Place(uri, _address(uri, record), record.mlflow_run_id, len(record.files))
        for uri, record in all_sent(run.path).items()
    ]
    return {"places": places} if places else None


def _address(uri: str, entry: Sent) -> str | None:
    uri = uri.replace(f"{MASK}@", "")
    if not uri.startswith(("http://", "https://")) or not uri.isascii():
        return None
    experiment = quote(entry.experiment_id or "0", safe="")
    return f"{uri}/#/experiments/{experiment}/runs/{quote(entry.mlflow_run_id or '', safe='')}"
