"""Tickets: which job may execute a run, in a file of its directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mleredux._core.store.files import write_atomically

TICKET_FILE = ".ticket"


def read_ticket(folder: Path) -> dict[str, Any]:
    """Return the ticket of a run: `nonce`, `executor`, `job`, and how to execute it; empty if there is none."""
    try:
        ticket = json.loads((folder / TICKET_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return ticket if isinstance(ticket, dict) else {}


def write_ticket(folder: Path, ticket: dict[str, Any]) -> None:
    """Store the ticket of a run; a job with another one does nothing."""
    write_atomically(folder / TICKET_FILE, json.dumps(ticket))
