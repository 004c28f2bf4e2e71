"""Interface for services that execute runs at executors and read runs from object stores."""

from __future__ import annotations

from mleredux_executor_nodes.elsewhere import NODE_PROGRAM, Elsewhere
from mleredux_executor_nodes.lease import LEASE_SECONDS, Lease, calm_seconds, next_fence, read_lease, take_away
from mleredux_executor_nodes.node import main as execute_ticket
from mleredux_executor_nodes.replica import delete_replica
from mleredux_executor_nodes.stored_runs import StoredFile, StoredRuns

__all__ = [
    "LEASE_SECONDS",
    "NODE_PROGRAM",
    "Elsewhere",
    "Lease",
    "StoredFile",
    "StoredRuns",
    "calm_seconds",
    "delete_replica",
    "execute_ticket",
    "next_fence",
    "read_lease",
    "take_away",
]
