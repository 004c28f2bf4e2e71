"""A sandbox of containers that never see the answers."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """The sandbox `docker`."""
    return [Ref("docker", "mleredux_sandbox_docker.sandbox:sandbox")]
