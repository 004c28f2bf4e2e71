"""What this package registers: a technique."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """The technique, imported when it is used."""
    return [Ref("constant-columns", "constant_columns.technique:technique")]
