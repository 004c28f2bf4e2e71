"""Runs on executors: submitted to local processes or to nodes, and monitored until they end, perhaps via object stores.

| module | contents |
|---|---|
| `local` | the executor `local`: processes on this machine |
| `remote_runs`, `followed_run` | submission of runs to an executor, and monitoring |
| `node`, `lease` | the program on a node that executes and publishes one run; the right to write to its folder |
| `objects`, `snapshots`, `shelf` | object stores; folders as pieces; transfer of prepared data to nodes |
| `replica`, `stored_runs` | runs that nodes publish to object stores, and reading them back |
| `shared` | the interface for services |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from mleredux.plugin.artifact import Run
    from mleredux.plugin.command import Catalogue
    from mleredux.plugin.host import Pipeline

mleredux_contract = 2


@hookimpl
def mleredux_register_executors() -> list[Ref]:
    """Return the executor of this machine."""
    return [Ref("local", "mleredux_executor_nodes.local:EXECUTOR")]


@hookimpl
def mleredux_open_nodes(catalogue: Catalogue) -> Nodes:
    """Return the object that submits runs to executors."""
    return Nodes(catalogue)


@dataclass(frozen=True)
class Nodes:
    """Implements `mleredux.plugin.executor.Nodes`."""

    catalogue: Catalogue

    def execute(self, pipeline: Pipeline, runs: Sequence[Run]) -> None:
        """Execute runs on the pipeline's executor to their end."""
        from mleredux_executor_nodes.remote_runs import RemoteRuns

        assert pipeline.executor is not None
        RemoteRuns(pipeline, pipeline.executor).execute(runs)

    def publish(self, run: Run) -> None:
        """Publish an ended run that was changed locally."""
        from mleredux_executor_nodes.replica import publish_again

        publish_again(self.catalogue, run.path)

    def delete(self, folder: Path) -> None:
        """Delete an ended run, identified by its directory, from its object store."""
        from mleredux_executor_nodes.replica import delete_replica

        delete_replica(self.catalogue, folder)
