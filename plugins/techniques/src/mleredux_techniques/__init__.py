"""Technique tasks: small diagnostic questions on the data of any competition with a table."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.hookspecs import hookimpl
from mleredux.plugins import Ref

mleredux_contract = 1

TECHNIQUES = ("imbalance", "missing", "encoding", "cv", "scaling", "leakage")


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """The six techniques, imported when they are used."""
    return [Ref(name, f"{__name__}.techniques:{name}") for name in TECHNIQUES]
