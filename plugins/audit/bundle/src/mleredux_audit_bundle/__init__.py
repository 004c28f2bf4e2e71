"""`mleredux bundle` and `mleredux verify-bundle`: sign results, and verify them offline."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands `bundle` and `verify-bundle`."""
    yield Ref(
        "bundle",
        f"{__name__}.commands:bundle",
        {"title": "Write results into one signed archive.", "section": "Results"},
    )
    yield Ref(
        "verify-bundle",
        f"{__name__}.commands:verify",
        {"title": "Check a signed archive; grade it again.", "section": "Results", "formerly": ("verify",)},
    )
