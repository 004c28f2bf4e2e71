"""Plugin that registers a technique."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """Return the technique, which is imported on use."""
    return [Ref("constant-columns", "constant_columns.technique:technique")]
