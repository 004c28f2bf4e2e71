"""Writes the pages and tables of the docs that are made from the code: `python docs/generate.py [--check]`.

`hooks.md`, `cli.md` and `api-plugin.md` are made whole; in other pages, what stands between `<!-- made: NAME -->` and
`<!-- end -->`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import itertools
import json
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import mleredux_competition_mlebench
from mleredux import __version__, hookspecs, plugin
from mleredux._core.cli.root import COMMANDS, root
from mleredux._core.cli.server import note_server
from mleredux._core.models import CAUSES, Model, Report, RunSpec, RunUse, Task
from mleredux._core.models.agent import Agent, Limits
from mleredux._core.models.report import Ledger
from mleredux._core.models.run import Outcome, State
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.loader import resolve
from mleredux._core.store.states import TRANSITIONS

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
SINCE = REFERENCE / "since.json"
_MADE = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_BY = "<!-- Made by docs/generate.py; don't edit. -->\n"


def hooks_page() -> str:
    """Every hook, with its sentence and its types."""
    source = Path(hookspecs.__file__).read_text(encoding="utf-8")
    lines = [
        _BY,
        "# Hooks",
        "",
        f"The contract between mleredux and its plugins, version {hookspecs.CONTRACT_VERSION}. "
        "It is one file, `core/src/mleredux/hookspecs.py`; this page is made from it. "
        "[plugins.md](plugins.md) says how plugins are found, [tutorial.md](../tutorial.md) makes one.",
        "",
        "```python",
        "from mleredux import hookimpl",
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
        kind = "The first result that is not None wins." if options["firstresult"] else "All results are kept."
        signature = str(inspect.signature(function)).replace("'", "")
        text = inspect.getdoc(function) or ""
        text = text if "kept" in text else f"{text} {kind}"
        lines += ["", f"### {name}", "", f"```python\n{name}{signature}\n```", "", text]
    return "\n".join(lines) + "\n"


def hook_names() -> list[str]:
    """Names of all hooks."""
    return sorted(name for name in vars(hookspecs) if name.startswith("mleredux_"))


def cli_page() -> str:
    """Every command's help."""
    lines = [
        _BY,
        "# The command line",
        "",
        "Every command with `--json` prints one JSON document on stdout and nothing else there. Nothing ever waits for "
        "input. Errors are one sentence and what to do; `--debug` shows where they come from.",
        "",
        "| exit code | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | an error, said on stderr; a submission that is not well-formed (`validate`); something required is "
        "broken (`doctor`) |",
        "| 2 | wrong usage |",
        "| 3 | an agent failed or ran out of time (`run`) |",
        "| 4 | the environment or a task broke, not the agent (`run`) |",
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
    """What works with `--server`: our commands, with the options and commands that only a server has."""
    lines = [
        "",
        "## With a server",
        "",
        "`--server URL`, anywhere on the line, or `MLEREDUX_SERVER` runs these commands on a server: the same "
        "arguments, JSON documents and exit codes. Other commands work on this machine only, and say so; "
        "`--server=` (an empty one) means this machine in spite of the variable.",
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
    """A command's help, and that of all commands beneath it."""
    lines = ["", f"{'#' * level} mleredux {name}{where}", *_origin(catalogue, name), ""]
    lines.append(_help(command, name.rpartition(" ")[2], context))
    if isinstance(command, click.Group):
        inner = click.Context(command, info_name=name.rpartition(" ")[2], parent=context)
        for part in sorted(command.list_commands(inner)):
            found = command.get_command(inner, part)
            assert found is not None
            lines += _command(found, inner, catalogue, f"{name} {part}", where=where, level=level + 1)
    return lines


def commands() -> list[str]:
    """Our commands, and those that the plugins of this repository add."""
    return root.list_commands(click.Context(root, info_name="mleredux", obj=Catalogue()))


def _origin(catalogue: Catalogue, command: str) -> list[str]:
    """Which distribution brings a command that is not the core's."""
    entry = catalogue.entries("commands").get(command)
    return [] if entry is None else ["", f"Comes with `{entry.plugin.distribution}`."]


def _help(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    context = click.Context(
        command, parent, info_name=name, terminal_width=100, max_content_width=100, obj=parent.obj if parent else None
    )
    return f"```\n{command.get_help(context).rstrip()}\n```"


def states_table() -> str:
    """Which state may follow which."""
    rows = [f"| `{state}` | {', '.join(f'`{after}`' for after in sorted(TRANSITIONS[state]))} |" for state in State]
    return "\n".join(["| state | what may follow |", "|---|---|", *rows])


def causes_table() -> str:
    """What follows from each cause of a failure."""
    words = {True: "yes", False: "no"}
    rows = [
        f"| `{cause}` | {policy.meaning} | {words[policy.retried]} | {words[policy.counts]} |"
        for cause, policy in CAUSES.items()
    ]
    return "\n".join(["| cause | meaning | tried once more | counts against the agent |", "|---|---|---|---|", *rows])


def fields_table(model: type[Model]) -> str:
    """The fields of a model, with the texts beneath them in its source."""
    texts = _texts(model)
    rows = []
    for name, field in model.model_fields.items():
        kind = getattr(field.annotation, "__name__", None) if not _generic(field.annotation) else str(field.annotation)
        kind = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", str(kind)).replace("NoneType", "None")
        kind = re.sub(r"^Optional\[(.*)\]$", r"\1 | None", kind).replace("|", "\\|")
        default = "" if field.is_required() else _shown(field.get_default(call_default_factory=True))
        text = texts.get(name, "").replace("|", "\\|")
        rows.append(f"| `{name}` | {kind} | {default} | {text} |")
    return "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows])


def _generic(annotation: Any) -> bool:
    return hasattr(annotation, "__args__")


def _shown(value: Any) -> str:
    text = type(value).__name__ + "()" if isinstance(value, Model) else repr(value)
    return f"`{text}`"


def _texts(model: type[Model]) -> dict[str, str]:
    """The string beneath each field."""
    source = inspect.getsource(model)
    found = re.findall(r'^    (\w+):[^\n]*\n    """(.*?)"""', source, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in found}


def fixed_table() -> str:
    """What the variants `+fixed` of the competitions of MLE-bench mend, as their declarations say."""
    rows = [f"| `{name}` | {variant.wrong} | {variant.done} |" for name, variant in sorted(fixed_variants().items())]
    return "\n".join(
        ["| competition | what is wrong in the published task | what `+fixed` does |", "|---|---|---|", *rows]
    )


def fixed_variants() -> dict[str, Any]:
    """The variants `fixed` of all competitions that have one."""
    found = {
        ref.id: resolve(ref, None).variants.get("fixed")
        for ref in mleredux_competition_mlebench.mleredux_register_tasks()
    }
    return {name: variant for name, variant in found.items() if variant is not None}


def surface_page() -> str:
    """What plugins are written with: each module of `mleredux.plugin`, and each of its names."""
    since = known_since()
    lines = [
        _BY,
        "# What plugins are written with",
        "",
        "A plugin imports from `mleredux.plugin`, `mleredux.errors` and `mleredux` ([sdk.md](sdk.md)) and nothing else "
        "of mleredux; what is private starts with an underscore. What is here changes only with an entry in the "
        "changelog.",
    ]
    for name in facades():
        module = importlib.import_module(name)
        lines += ["", f"## {name}", "", *_documented(inspect.getdoc(module) or ""), ""]
        for public in sorted(module.__all__, key=str.lower):
            kind, signature, text = described(name, public)
            added = since.get(f"{name}.{public}", "?")
            lines.append(f"- `{public}{signature}` · {kind} · since {added}<br>{text}")
    return "\n".join(lines) + "\n"


def facades() -> list[str]:
    """The public modules that plugins import from."""
    return ["mleredux.plugin", *(f"mleredux.plugin.{found.name}" for found in pkgutil.iter_modules(plugin.__path__))]


def public_names() -> set[str]:
    """Every name that plugins may import, with its module."""
    return {f"{name}.{public}" for name in facades() for public in importlib.import_module(name).__all__}


def known_since() -> dict[str, str]:
    """The version that brought each public name; for one that was taken away, `0.2, removed in 0.4`."""
    found: dict[str, str] = json.loads(SINCE.read_text(encoding="utf-8")) if SINCE.exists() else {}
    return found


def described(module: str, name: str) -> tuple[str, str, str]:
    """Kind, signature and first paragraph of a public name."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return kind, "", _first(inspect.getdoc(value))
    written = _text_beneath(module, name)
    if written:
        return "value", "", _first(written)
    signature = (
        re.sub(r"<function .*? at 0x\w+>", "…", str(inspect.signature(value))).replace("'", "")
        if inspect.isroutine(value)
        else ""
    )
    return ("function" if signature else "value"), signature, _first(inspect.getdoc(value) if signature else "")


def _documented(text: str) -> list[str]:
    """A docstring as Markdown: what is indented after `::` is code."""
    prose, mark, code = text.partition("::\n\n")
    return [prose + ":", "", "```python", inspect.cleandoc(code), "```"] if mark else [prose]


def _first(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


def _text_beneath(module: str, name: str) -> str:
    """The string beneath an assignment, in the module that a public one imports the name from."""
    for node in ast.walk(_tree(module)):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if (alias.asname or alias.name) == name and isinstance(node, ast.ImportFrom) and node.module:
                body = _tree(node.module).body
                for one, following in itertools.pairwise(body):
                    targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
                    if any(isinstance(target, ast.Name) and target.id == alias.name for target in targets):
                        text = following.value if isinstance(following, ast.Expr) else None
                        return str(text.value) if isinstance(text, ast.Constant) else ""
                return _text_beneath(node.module, alias.name)
    return ""


def _tree(module: str) -> ast.Module:
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


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
    "agent": lambda: fields_table(Agent),
}


def pages() -> dict[Path, str]:
    """Every page that is made, or holds something made, as it must be."""
    made = {
        REFERENCE / "hooks.md": hooks_page(),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "api-plugin.md": surface_page(),
    }
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path not in made and _MADE.search(text):
            made[path] = _MADE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[3]}", text)
    return made


def main() -> int:
    """Write what is not current, or with `--check` name it."""
    if "--check" not in sys.argv:
        here = ".".join(__version__.split(".")[:2])
        there = public_names()
        known = {name: version for name, version in known_since().items() if name in there or version != here}
        since = {**dict.fromkeys(there, here), **known}
        SINCE.write_text(json.dumps(dict(sorted(since.items())), indent=1) + "\n", encoding="utf-8")
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in sys.argv:
            path.write_text(pages()[path], encoding="utf-8")
        print(f"{path.relative_to(DOCS.parent)} {'is not current' if '--check' in sys.argv else 'written'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
