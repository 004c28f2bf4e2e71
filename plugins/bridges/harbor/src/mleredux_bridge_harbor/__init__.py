"""Tasks as task directories of Harbor: `mleredux export-task TASK --output FOLDER`."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The command `export-task`."""
    title = "Write a task as a task directory of Harbor."
    return [Ref("export-task", f"{__name__}.command:command", {"title": title, "section": "Tasks"})]
