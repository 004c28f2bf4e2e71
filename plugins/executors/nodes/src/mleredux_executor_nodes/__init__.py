"""Runs at executors: given to processes of this machine or to nodes, followed to their end, in object stores if needed.

| module | contents |
|---|---|
| `local` | the executor `local`: processes of this machine |
| `elsewhere` | runs that are given to an executor and followed |
| `node`, `lease` | the program on a node, which executes one run; who may write to a run's folder |
| `objects`, `snapshots`, `shelf` | object stores; folders as pieces; prepared data on its way to nodes |
| `publication`, `replica`, `stored_runs` | a run that its node publishes, and that is read from there |
| `shared` | what services import |
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
    """Return what gives runs to executors."""
    return Nodes(catalogue)


@dataclass(frozen=True)
class Nodes:
    """Implements `mleredux.plugin.executor.Nodes`."""

    catalogue: Catalogue

    def execute(self, pipeline: Pipeline, runs: Sequence[Run]) -> None:
        """Execute runs at the pipeline's executor to their end."""
        from mleredux_executor_nodes.elsewhere import Elsewhere

        assert pipeline.executor is not None
        Elsewhere(pipeline, pipeline.executor).execute(runs)

    def publish(self, run: Run) -> None:
        """Publish an ended run that was changed here."""
        from mleredux_executor_nodes.replica import publish_again

        publish_again(self.catalogue, run.path)

    def delete(self, folder: Path) -> None:
        """Delete what an object store has of an ended run, by its directory."""
        from mleredux_executor_nodes.replica import delete_replica

        delete_replica(self.catalogue, folder)
