"""Plugin that registers the sandbox with mleredux."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """Return the sandbox `plain`."""
    return [Ref("plain", "plain_sandbox.sandbox:sandbox")]
