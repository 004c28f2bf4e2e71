"""Interface for services that execute runs on executors and read runs from object stores."""

from __future__ import annotations

from mleredux_executor_nodes.lease import LEASE_SECONDS, Lease, calm_seconds, new_fence, read_lease, revoke_lease
from mleredux_executor_nodes.node import main as execute_ticket
from mleredux_executor_nodes.remote_runs import NODE_PROGRAM, RemoteRuns
from mleredux_executor_nodes.replica import delete_replica
from mleredux_executor_nodes.stored_runs import StoredFile, StoredRuns

__all__ = [
    "LEASE_SECONDS",
    "NODE_PROGRAM",
    "Lease",
    "RemoteRuns",
    "StoredFile",
    "StoredRuns",
    "calm_seconds",
    "delete_replica",
    "execute_ticket",
    "new_fence",
    "read_lease",
    "revoke_lease",
]
