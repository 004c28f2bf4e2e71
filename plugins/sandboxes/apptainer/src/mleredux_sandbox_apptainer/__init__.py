"""A sandbox of Apptainer containers, without any daemon and without root."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """Return the sandbox `apptainer`."""
    return [Ref("apptainer", "mleredux_sandbox_apptainer.sandbox:sandbox")]
