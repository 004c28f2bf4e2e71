"""The executor `slurm`: each run is a job of a Slurm cluster."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_executors() -> list[Ref]:
    """Return the executor."""
    return [Ref("slurm", "mleredux_executor_slurm.executor:EXECUTOR")]
