"""`mleredux bundle` and `mleredux verify`: results that are signed, and checked by others offline."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The commands `bundle` and `verify`."""
    yield Ref(
        "bundle",
        f"{__name__}.commands:bundle",
        {"title": "Write results into one signed archive.", "section": "Results"},
    )
    yield Ref(
        "verify",
        f"{__name__}.commands:verify",
        {"title": "Check a signed archive; grade it again.", "section": "Results"},
    )
