"""Complete names in a shell: tasks, agents, runs, arms and other objects, by the name or placeholder of a parameter."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from mleredux._core.cli.context import catalogue
from mleredux.models import State
from mleredux.models.formats import short_reference

_KINDS = {
    **dict.fromkeys(("task", "tasks", "TASK", "TASK..."), "tasks"),
    **dict.fromkeys(("agent", "agents", "PATH|REFERENCE"), "agents"),
    **dict.fromkeys(("run", "runs", "resume", "replay", "RUN", "[RUN]..."), "runs"),
    **dict.fromkeys(("a", "b", "arm", "arms", "ARM"), "arms"),
    **dict.fromkeys(("sandbox", "sandboxes"), "sandboxes"),
    **dict.fromkeys(("plan", "package", "PLAN_OR_DIR"), "files"),
    **dict.fromkeys(("tools", "agent_tools"), "tools"),
    "executor": "executors",
    "experiment": "experiment",
    "FORMAT": "formats",
    "sets": "sets",
    "technique": "techniques",
    "status": "status",
}
"""What completes parameters with these names or placeholders; a placeholder takes precedence."""


class _Name(click.types.StringParamType):
    """A name that the shell completes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return names that begin as typed, or request the shell's own completion of paths."""
        if self.kind == "files" or (self.kind in ("agents", "runs") and incomplete.startswith((".", "/", "~"))):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in sorted(set(self._names(ctx))) if name.startswith(incomplete)]

    def _names(self, ctx: click.Context) -> Iterable[str]:
        """Return installed objects, or names that occur in the folder for runs."""
        if self.kind == "sets":
            tasks = catalogue(ctx).entries("tasks").values()
            return ("all", *(name for task in tasks for name in task.ref.summary.get("sets", ())))
        if self.kind == "status":
            return (*map(str, State), "interrupted")
        if self.kind not in ("runs", "arms", "experiment"):
            return catalogue(ctx).entries(self.kind)
        from mleredux._core.store import RunStore

        above = (context.params.get("runs_dir") for context in (ctx, ctx.parent) if context is not None)
        store = RunStore(next(filter(None, above), None))
        if self.kind == "runs":
            return ("last", *store.ids())
        rows = store.rows()
        if self.kind == "arms":
            return (row["arm"] or short_reference(row["agent"]) for row in rows if row["agent"])
        return (row["experiment"] for row in rows if row["experiment"])


def complete(command: click.Command) -> None:
    """Let the shell complete the values of parameters that name objects, including those of commands in a group."""
    for param in command.params:
        kind = _KINDS.get(str(param.metavar)) or _KINDS.get(str(param.name))
        if kind is not None and type(param.type) is click.types.StringParamType:
            param.type = _Name(kind)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete(below)
