"""A sandbox of Podman containers, without any daemon."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """Return the sandbox `podman`."""
    return [Ref("podman", "mleredux_sandbox_podman.sandbox:sandbox")]
