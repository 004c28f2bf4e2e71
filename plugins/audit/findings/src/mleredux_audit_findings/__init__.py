"""Measure whether findings of technique tasks help an agent.

| module | contents |
|---|---|
| `command` | `mleredux experiment findings` |
| `study` | the plan, the technique runs, the contexts, and the arms |
| `registration` | when the plan was committed, from the repository's history |
| `report` | the page and its figures |
"""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `experiment findings`."""
    title = "Measure whether findings help an agent: technique runs, contexts, arms, report."
    return [Ref("experiment findings", f"{__name__}.command:command", {"title": title})]
