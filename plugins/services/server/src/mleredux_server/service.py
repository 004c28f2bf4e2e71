"""What all parts of a running service share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request
from mleredux.data import DataStore
from mleredux.plugins import Catalogue
from mleredux.store import RunStore

from mleredux_server.database import Database
from mleredux_server.settings import Settings


@dataclass
class Service:
    """A running service.

    Attributes:
        wake: Set when there may be something to schedule.
    """

    settings: Settings
    database: Database
    catalogue: Catalogue
    store: RunStore
    data: DataStore
    wake: threading.Event = field(default_factory=threading.Event)

    def job_dir(self, kind: str, job_id: str) -> Path:
        """Folder of a job: a run's own directory, or one in the state folder."""
        if kind == "run":
            return self.store.path / job_id
        return self.settings.state_dir / f"{kind}s" / job_id


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    found: Service = request.app.state.service
    return found
