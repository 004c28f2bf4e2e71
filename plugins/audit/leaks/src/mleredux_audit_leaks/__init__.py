"""`mleredux audit TASK`: what lets an agent score without learning."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The command `audit`."""
    title = "Look for leaks in a prepared task: answers in public files, telling ids, duplicates."
    yield Ref("audit", f"{__name__}.command:command", {"title": title})
