"""Generate the pages and tables of the docs that are derived from the code: `python docs/generate.py [--check]`.

`hooks.md`, `cli.md`, `http.md`, `api-plugin.md` and the pages in `api` are generated completely; in other pages, the
text between `<!-- made: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import inspect
import itertools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import mleredux_competition_mlebench
from mleredux import __version__, hookspecs
from mleredux._core.cli.options import note_server
from mleredux._core.cli.root import COMMANDS, root
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.directory import directory
from mleredux._core.plugins.loader import resolve
from mleredux._core.store.states import TRANSITIONS
from mleredux.models import CAUSES, Agent, Limits, Model, Report, RunSpec, RunUse, Task
from mleredux.models.experiment import Design, Plan, Stop
from mleredux.models.report import Ledger
from mleredux.models.request import Arm
from mleredux.models.run import Outcome, State
from mleredux_competition_mlebench.facts import private_ids

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
import llms  # noqa: E402
import pictures  # noqa: E402
import routes  # noqa: E402
import surface  # noqa: E402

REFERENCE = surface.REFERENCE
_MADE = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def hooks_page() -> str:
    """Return the page of all hooks, with their docstrings and types."""
    source = Path(hookspecs.__file__).read_text(encoding="utf-8")
    lines = [
        surface.BY,
        "# Hooks",
        "",
        f"The contract between mleredux and its plugins, version {hookspecs.CONTRACT_VERSION}. "
        "It is defined in one file, `core/src/mleredux/hookspecs.py`, from which this page is generated. "
        "[Plugins](plugins.md) describes how plugins are found; the [tutorial](../tutorial.md) writes one.",
        "",
        "```python",
        "from mleredux import Ref, hookimpl",
        "",
        f"mleredux_contract = {hookspecs.CONTRACT_VERSION}",
        "",
        "",
        "@hookimpl",
        "def mleredux_register_tasks():",
        '    return [Ref("my-task", "my_package.task:task")]',
        "```",
    ]
    headings = {match[1]: match.start() for match in re.finditer(r"^# (.+)$", source, re.MULTILINE)}
    hooks = sorted(hook_names(), key=lambda name: source.index(f"def {name}("))
    previous = ""
    for name in hooks:
        place = source.index(f"def {name}(")
        heading = [text for text, start in headings.items() if start < place][-1]
        if heading != previous:
            lines += ["", f"## {heading}"]
            previous = heading
        function = getattr(hookspecs, name)
        options: dict[str, Any] = function.mleredux_spec
        kind = "The first result that is not None is used." if options["firstresult"] else "All results are used."
        signature = str(inspect.signature(function)).replace("'", "")
        text = text if "all plugins" in (text := inspect.getdoc(function) or "") else f"{text} {kind}"
        lines += ["", f"### {name}", "", f"```python\n{name}{signature}\n```", "", text]
    return "\n".join(lines) + "\n"


def hook_names() -> list[str]:
    """Return the names of all hooks."""
    return sorted(name for name in vars(hookspecs) if name.startswith("mleredux_"))


def cli_page() -> str:
    """Return the page with the help of every command."""
    lines = [
        surface.BY,
        "# The command line",
        "",
        "With `--json`, a command prints exactly one JSON document on stdout. Commands wait for input only for "
        "confirmation, grants and secrets. Errors name the problem, then the remedy; `--debug` shows tracebacks.",
        "",
        "| exit code | meaning |",
        "|---|---|",
        "| 0 | success |",
        "| 1 | an error, printed on stderr; a submission that is not well-formed (`validate`); a required component is "
        "broken (`doctor`) |",
        "| 2 | usage error |",
        "| 3 | an agent failed or exceeded its time limit (`run`) |",
        "| 4 | the environment or a task failed, not the agent (`run`) |",
        "| 130 | cancelled |",
        "",
        "## mleredux",
        "",
        _help(root, "mleredux"),
    ]
    catalogue = Catalogue()
    context = click.Context(root, info_name="mleredux", obj=catalogue)
    for name in commands():
        command = root.get_command(context, name)
        assert command is not None
        lines += _command(command, context, catalogue, name)
    return "\n".join([*lines, *_with_a_server(catalogue)]) + "\n"


def _with_a_server(catalogue: Catalogue) -> list[str]:
    """Return the commands that support `--server`, with the options and subcommands that only a server has."""
    lines = [
        "",
        "## With a server",
        "",
        "`--server URL`, anywhere on the line, or `MLEREDUX_SERVER` runs these commands on a server: the same "
        "arguments, JSON documents and exit codes. Other commands work only locally and report this. "
        "`--server=` (empty) overrides the variable and runs locally.",
    ]
    context = click.Context(root, info_name="mleredux", obj=catalogue)
    note_server(context, ["--server", "URL"])
    for name in sorted(COMMANDS.keys() & set(root.list_commands(context))):
        command = root.get_command(context, name)
        assert command is not None
        lines += _command(command, context, catalogue, name, where=" --server URL", level=3)
    return lines


def _command(
    command: click.Command, context: click.Context, catalogue: Catalogue, name: str, *, where: str = "", level: int = 2
) -> list[str]:
    """Return the help of a command and all its subcommands."""
    lines = ["", f"{'#' * level} mleredux {name}{where}", *_origin(catalogue, name), ""]
    lines.append(_help(command, name.rpartition(" ")[2], context))
    if isinstance(command, click.Group):
        inner = click.Context(command, info_name=name.rpartition(" ")[2], parent=context)
        for part in sorted(command.list_commands(inner)):
            inside = command.get_command(inner, part) or command
            lines += _command(inside, inner, catalogue, f"{name} {part}", where=where, level=level + 1)
    return lines


def commands() -> list[str]:
    """Return the names of all commands of the core and of the plugins in this repository."""
    return root.list_commands(click.Context(root, info_name="mleredux", obj=Catalogue()))


def _origin(catalogue: Catalogue, command: str) -> list[str]:
    """Return the distribution of a command that is not part of the core."""
    entry = catalogue.entries("commands").get(command)
    return [] if entry is None else ["", f"Comes with `{entry.plugin.distribution}`."]


def _help(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    context = click.Context(
        command, parent, info_name=name, terminal_width=100, max_content_width=100, obj=parent.obj if parent else None
    )
    return f"```\n{command.get_help(context).rstrip()}\n```"


def states_table() -> str:
    """Return the table of permitted state transitions."""
    rows = [f"| `{state}` | {', '.join(f'`{after}`' for after in sorted(TRANSITIONS[state]))} |" for state in State]
    return "\n".join(["| state | may be followed by |", "|---|---|", *rows])


def causes_table() -> str:
    """Return the table of failure causes and their consequences."""
    words = {True: "yes", False: "no"}
    rows = [
        f"| `{cause}` | {policy.meaning} | {words[policy.retried]} | {words[policy.counts]} |"
        for cause, policy in CAUSES.items()
    ]
    return "\n".join(["| cause | meaning | retried once | counts against the agent |", "|---|---|---|---|", *rows])


def fields_table(model: type[Model]) -> str:
    """Return the table of a model's fields, with their docstrings."""
    rows = []
    for name, field in model.model_fields.items():
        kind = getattr(field.annotation, "__name__", None) if not _generic(field.annotation) else str(field.annotation)
        kind = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", str(kind)).replace("NoneType", "None")
        kind = re.sub(r"^Optional\[(.*)\]$", r"\1 | None", kind).replace("|", "\\|")
        default = "" if field.is_required() else _shown(field.get_default(call_default_factory=True))
        text = " ".join(surface.text_of(model, name).split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {kind} | {default} | {text} |")
    return "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows])


def _generic(annotation: Any) -> bool:
    return hasattr(annotation, "__args__")


def _shown(value: Any) -> str:
    text = type(value).__name__ + "()" if isinstance(value, Model) else repr(value)
    return f"`{text}`"


def fixed_table() -> str:
    """Return the table of problems fixed by the variants `+fixed` of MLE-bench competitions, from their
    declarations."""
    rows = [f"| `{name}` | {variant.wrong} | {variant.done} |" for name, variant in sorted(fixed_variants().items())]
    return "\n".join(["| competition | fault of the published task | change in `+fixed` |", "|---|---|---|", *rows])


def kept_ids_table() -> str:
    """Return the table of identifiers that the variants `+private` of MLE-bench competitions keep."""
    names = [ref.id for ref in mleredux_competition_mlebench.mleredux_register_tasks()]
    rows = [f"| `{name}` | {kept} |" for name in sorted(names) if (kept := private_ids(name).get("kept_ids"))]
    return "\n".join(["| competition | identifiers that remain |", "|---|---|", *rows])


def fixed_variants() -> dict[str, Any]:
    """Return the variant `fixed` of each competition that has one."""
    variants = {
        ref.id: resolve(ref).variants.get("fixed") for ref in mleredux_competition_mlebench.mleredux_register_tasks()
    }
    return {name: variant for name, variant in variants.items() if variant is not None}


def directory_page() -> str:
    """Return the page of the directory of plugins."""
    lines = [
        surface.BY,
        "# Directory of plugins",
        "",
        "`mleredux plugins search WORDS` searches this list, which comes with mleredux as the file "
        "`core/src/mleredux/directory.toml`. CI installs each entry into a clean environment. To add yours, see "
        "`CONTRIBUTING.md`; plugins that are not listed have the keyword `mleredux-plugin` on the package index. "
        "Plugins are code that you install: they run with your privileges.",
    ]
    for role, entries in itertools.groupby(
        sorted(directory(), key=lambda entry: (entry.role, entry.name)), lambda entry: entry.role
    ):
        lines += ["", f"## {role.capitalize()}", "", "| package | what it is | registers |", "|---|---|---|"]
        for entry in entries:
            lines.append(f"| [{entry.name}]({entry.source}) | {entry.summary} | {_registers(entry.provides)} |")
    return "\n".join(lines) + "\n"


def _registers(provides: dict[str, tuple[str, ...]]) -> str:
    """Return names by kind, or their number if there are many."""
    parts = (f"{', '.join(names)}" if len(names) <= 8 else f"{len(names)} {kind}" for kind, names in provides.items())
    return "; ".join(parts)


TABLES: dict[str, Callable[[], str]] = {
    "states": states_table,
    "causes": causes_table,
    "run-spec": lambda: fields_table(RunSpec),
    "run-use": lambda: fields_table(RunUse),
    "outcome": lambda: fields_table(Outcome),
    "report": lambda: fields_table(Report),
    "ledger": lambda: fields_table(Ledger),
    "limits": lambda: fields_table(Limits),
    "task": lambda: fields_table(Task),
    "fixed": fixed_table,
    "kept-ids": kept_ids_table,
    "agent": lambda: fields_table(Agent),
    "plan-experiment": lambda: fields_table(Design),
    "plan-arm": lambda: fields_table(Arm),
    "plan-stop": lambda: fields_table(Stop),
}


def pages() -> dict[Path, str]:
    """Return the expected content of every page that is generated or has generated tables."""
    expected = {
        REFERENCE / "hooks.md": hooks_page(),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "directory.md": directory_page(),
        REFERENCE / "http.md": routes.page(),
        **surface.pages(),
        **pictures.pictures(),
        REFERENCE / "schemas" / "plan.schema.json": json.dumps(Plan.model_json_schema(), indent=1) + "\n",
    }
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path not in expected and _MADE.search(text):
            expected[path] = _MADE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[3]}", text)
    return {**expected, DOCS / "llms.txt": llms.text()}


def main() -> int:
    """Write the pages that are not up to date, or list them with `--check`."""
    if "--check" not in sys.argv:
        here = ".".join(__version__.split(".")[:2])
        there = surface.public_names()
        known = {name: version for name, version in surface.known_since().items() if name in there or version != here}
        since = {**dict.fromkeys(there, here), **known}
        surface.SINCE.write_text(json.dumps(dict(sorted(since.items())), indent=1) + "\n", encoding="utf-8")
    expected = pages()
    stale = [path for path, text in expected.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in {*(REFERENCE / "api").glob("*.md")} - expected.keys():
        print(f"{path.relative_to(DOCS)} is of a module that is gone: delete it")
        return 1
    for path in stale:
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(expected[path], encoding="utf-8")
        print(f"{path.relative_to(DOCS.parent)} {'is not current' if '--check' in sys.argv else 'written'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
