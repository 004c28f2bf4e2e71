"""`mleredux audit TASK`: find leaks in a prepared task.

| modules | contents |
|---|---|
| `command`, `audit` | `mleredux audit`; the audit of one task |
| `inventory` | public files, including members of archives |
| `tables` | tables in files of any format, including record formats |
| `truth` | the answers, joined with public tables and files |
| `checks`, `statistics` | one module per type of leak; predictive skill and permutation tests |
| `report` | findings by severity |
"""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `audit`."""
    title = "Find leaks in a prepared task."
    yield Ref("audit", f"{__name__}.command:command", {"title": title, "section": "Tasks"})
