"""Complete names in a shell: tasks, agents, runs, arms and other objects, by the name or placeholder of a parameter."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import escape, glob

import click
from click import shell_completion as shells

from mleredux._core.cli.context import catalogue
from mleredux._core.plugins.catalogue import TECHNIQUES, Catalogue
from mleredux._core.records import listed
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
    "options": "options",
    "sets": "sets",
    "technique": "techniques",
    "status": "status",
}
"""What completes parameters with these names or placeholders; a placeholder takes precedence."""


_PATHS = (".", "/", "~")
"""How paths begin."""


class _Name(click.types.StringParamType):
    """A name that the shell completes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[shells.CompletionItem]:
        """Return names that begin as typed, or request the shell's own completion of paths."""
        if self.kind == "files" or (self.kind in ("agents", "runs") and incomplete.startswith(_PATHS)):
            return [shells.CompletionItem(incomplete, type="file")]
        names = sorted(set(self._names(ctx, incomplete)))
        return [shells.CompletionItem(name) for name in names if name.startswith(incomplete)]

    def _names(self, ctx: click.Context, typed: str) -> Iterable[str]:
        """Return installed objects, or names that occur in the folder for runs."""
        if self.kind == "tasks":
            return _task_names(catalogue(ctx), typed)
        if self.kind == "sets":
            tasks = catalogue(ctx).entries("tasks")
            sets = (name for task in tasks.values() for name in task.ref.summary.get("sets", ()))
            return ("all", *sets, *(f"{TECHNIQUES}@{task}" for task in tasks if typed.startswith(TECHNIQUES[0])))
        if self.kind == "status":
            return (*map(str, State), "interrupted")
        if self.kind == "options":
            installed = catalogue(ctx)
            agents = installed.entries("agents").keys() & set(ctx.params.get("agents") or ())
            return (f"{key}={value}" for name in agents for key, value in installed.agent(name).options.items())
        scheme, colon, path = typed.partition(":")
        if self.kind == "agents" and colon and path.startswith(_PATHS[:2]) and not path.startswith("//"):
            return (f"{scheme}:{name}" for name in glob(f"{escape(path)}*"))  # noqa: PTH207 (keeps the path as typed)
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


def _task_names(installed: Catalogue, typed: str) -> Iterator[str]:
    """Yield tasks; as they are many, yield variants only after `+`, and a technique's tasks if its name is begun."""
    tasks = installed.entries("tasks")
    yield from tasks
    start, at, _ = typed.partition("@")
    for technique in installed.entries("techniques"):
        if technique == start.partition("+")[0] or (typed and technique.startswith(typed)):
            derived = listed(installed, "tasks", technique=technique)
            yield from (f"{start if at else technique}@{row['id'].partition('@')[2]}" for row in derived)
    base = typed.rpartition("+")[0]
    if known := tasks.get(base.rpartition("@")[2]):
        yield from (f"{base}+{variant}" for variant in ("dev", "debug-200", *known.ref.summary["variants"]))


class _Words(shells.ShellComplete):
    """Completion of whole words as the shell has them, including `--option=` before a value."""

    typed = ""

    def get_completions(self, args: list[str], incomplete: str) -> list[shells.CompletionItem]:
        """Return completions of the whole word."""
        self.typed = incomplete
        option = incomplete[: incomplete.find("=") + 1] if incomplete.startswith("--") else ""
        items = super().get_completions([*args, option[:-1]] if option else args, incomplete.removeprefix(option))
        return [shells.CompletionItem(option + item.value, item.type, item.help) for item in items]


class _Bash(_Words, shells.BashComplete):
    """Completion in bash, which splits words at `=`, `:` and `@`, and replaces only what follows."""

    source_template = shells.BashComplete.source_template.replace(
        '"${COMP_WORDS[*]}"', '"${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS"'
    ).replace(
        "COMPREPLY+=($value)",
        """[[ ${COMP_WORDS[COMP_CWORD]} == [\\"\\']* ]] || printf -v value %%q "$value"; COMPREPLY+=("$value")""",
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Split the line as the shell does when it runs it."""
        line = os.environ["COMP_WORDS"]
        words = shells.split_arg_string(line)
        return (words[1:], "") if line[-1:].isspace() else (words[1:-1], words[-1])

    def format_completion(self, item: shells.CompletionItem) -> str:
        """Format a completion without the part of the word that precedes the last separator, or the last `@`."""
        separators = set("=:@") & set(os.environ.get("COMP_WORDBREAKS", ""))
        start = max((self.typed.rfind(mark) + (mark != "@") for mark in separators), default=0)
        return super().format_completion(shells.CompletionItem(item.value[max(start, 0) :], item.type))


class _Zsh(_Words, shells.ZshComplete):
    """Completion in zsh."""

    source_template = shells.ZshComplete.source_template.replace("_path_files", "compset -P '--*='; _path_files")


class _Fish(_Words, shells.FishComplete):
    """Completion in fish."""

    source_template = shells.FishComplete.source_template.replace('string split ","', 'string split -m 1 ","').replace(
        "__fish_complete_path $metadata[2]", 'complete -C "true "(string escape -- $metadata[2])'
    )


def complete(command: click.Command) -> None:
    """Let the shell complete the values of parameters that name objects, including those of commands in a group."""
    for param in command.params:
        kind = _KINDS.get(str(param.metavar)) or _KINDS.get(str(param.name))
        if kind is not None and type(param.type) is click.types.StringParamType:
            param.type = _Name(kind)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete(below)


for _shell in (_Bash, _Zsh, _Fish):
    shells.add_completion_class(_shell)
