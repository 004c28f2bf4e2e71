"""`mleredux audit TASK`: find leaks in a prepared task."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The command `audit`."""
    title = "Find leaks in a prepared task."
    yield Ref("audit", f"{__name__}.command:command", {"title": title, "section": "Tasks"})
