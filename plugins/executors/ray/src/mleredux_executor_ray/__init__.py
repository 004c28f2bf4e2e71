"""The executor `ray`: each run is a detached actor of a Ray cluster."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_executors() -> list[Ref]:
    """Return the executor."""
    return [Ref("ray", "mleredux_executor_ray.executor:EXECUTOR")]
