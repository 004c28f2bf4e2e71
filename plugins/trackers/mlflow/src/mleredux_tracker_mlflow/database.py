"""Export runs to an MLflow database in one file, which `mlflow ui` opens. Importing this module does not import
MLflow."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mleredux.plugin.files import plain_path
from mleredux_rollout import ExportedRun, Format

from mleredux_tracker_mlflow.settings import Settings


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    from mleredux_tracker_mlflow.upload import Sender

    with tempfile.TemporaryDirectory() as folder:
        path = plain_path(Path(folder)) / "mlflow.db"
        sender = Sender(Settings(uri=f"sqlite:///{path}", artifact_mb=0, record=False))
        for run in runs:
            sender.send(run.run)
        yield path.read_bytes()


MLFLOW = Format(
    id="mlflow",
    title="An MLflow database (SQLite), without the runs' files",
    suffix=".db",
    write=_write,
    together=True,
)
