"""`mleredux new`."""

from __future__ import annotations

import keyword
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click
from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.command import CommandGroup, catalogue

_TEMPLATES = Path(__file__).parents[1] / "templates"
_SUFFIX = ".tmpl"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


@click.group("new", cls=CommandGroup)
def command() -> None:
    """Create a new plugin of any kind: a complete, installable package with tests."""


_output_option = click.option(
    "-o", "--output", "parent", type=click.Path(file_okay=False, path_type=Path), default=".", help="Parent folder."
)
_PROGRAMS = {
    "code": "a script, called with the names of a CSV of inputs and of the CSV of predictions to write.",
    "service": "an HTTP server that answers `POST /predict` on the port given as its argument.",
    "model": "an archive of weights and `main.py`, whose `load(folder)` returns an object with `predict(rows)`.",
    "policy": "a script that defines `act(observation)`.",
}


@command.command("task-bundle")
@click.argument("name")
@_output_option
@click.option(
    "--kind",
    type=click.Choice(["table", *_PROGRAMS]),
    default="table",
    show_default=True,
    help="Type of submission: a table of predictions, or a program that is executed on private inputs.",
)
@click.pass_context
def task_bundle(ctx: click.Context, name: str, parent: Path, kind: str) -> None:
    """Create a package with a task in the folder NAME; replace its small generated data with yours."""
    templates, words = ["task-bundle"], {"needs": ""}
    if kind in _PROGRAMS:
        templates += ["task-bundle-program", f"task-bundle-{kind}"]
        ending = "zip" if kind == "model" else "py"
        words = {"kind": kind, "contract": _PROGRAMS[kind], "options": 'public=("train.csv",), ' * (kind != "model")}
        words["needs"] = f', "mleredux-programs{_bounds()}"'
        words |= {"file": f"submission.{ending}", "sample": f"sample_submission.{ending}"}
    folder = _write(ctx, templates, "tasks", name, parent, words)
    _print_next(folder, f"mleredux run {name} --agent dummy")


@command.command("agent")
@click.argument("name")
@_output_option
@click.option(
    "--script", "kind", flag_value="script", help="A small nearest-neighbors program for tables; the default."
)
@click.option("--llm", "kind", flag_value="llm", help="An LLM with a shell tool, in a loop of 50 lines.")
@click.option("--cli", "kind", flag_value="cli", help="A command-line program, such as a coding agent.")
@click.pass_context
def agent(ctx: click.Context, name: str, parent: Path, kind: str | None) -> None:
    """Create a package with a working agent in the folder NAME, as a starting point."""
    models = kind in ("llm", "cli")
    templates = ("agent", "agent-models", f"agent-{kind}") if models else ("agent",)
    folder = _write(ctx, templates, "agents", name, parent)
    run = f"mleredux run digits --agent {name}"
    _print_next(folder, f"OPENAI_API_KEY=… {run}   # with Docker or Podman" if models else run)


def _plugin(kind: str, what: str, kinds: str, guide: str, run: str, needs: tuple[str, ...] = ()) -> None:
    """Add the command for a kind of plugin that consists of one small module in addition to the files of every package.

    Args:
        what: A description of the package, with its article.
        kinds: The kind of registered objects whose names the new name must not repeat. guide: The documentation page
        about it.
        run: The command to try it with.
        needs: Requirements in addition to mleredux.
    """

    @command.command(kind, help=f"Create a package with {what[0].lower()}{what[1:]} in the folder NAME.")
    @click.argument("name")
    @_output_option
    @click.pass_context
    def create(ctx: click.Context, name: str, parent: Path) -> None:
        tried = run.format(name=name, variable=_variable(name))
        required = "".join(f', "{need}{_bounds() if need.startswith("mleredux") else ""}"' for need in needs)
        words = {"what": what, "guide": guide, "run": tried, "needs": required, "variable": _variable(name)}
        folder = _write(ctx, ("plugin", kind), kinds, name, parent, words)
        _print_next(folder, tried)


def _bounds() -> str:
    """Return the versions of mleredux's packages that are compatible with this one."""
    from mleredux import __version__

    major, minor = map(int, __version__.split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}"


def _variable(name: str) -> str:
    return f"{name.replace('-', '_').upper()}_FILE"


_RUN = "mleredux run digits --agent dummy"
_plugin("grader", "A grader", "graders", "metric", "mleredux list graders", ("mleredux-graders", "mleredux-tables"))
_plugin(
    "technique", "A technique", "techniques", "technique", "mleredux show {name}+planted-1@wine",
    ("mleredux-techniques",),
)  # fmt: skip
_plugin("sandbox", "A sandbox", "sandboxes", "sandbox", f"{_RUN} --sandbox {{name}}", ("psutil>=6",))
_NEEDS = ("mleredux-executor-nodes", "psutil>=6")
_plugin("executor", "An executor", "executors", "executor", f"{_RUN} --executor {{name}}", _NEEDS)
_plugin("artifact", "An artifact producer", "commands", "artifact", _RUN)
_plugin("panel", "A panel", "commands", "panel", f"{_RUN} && mleredux view -o site", ("mleredux-view",))
_plugin("tracker", "A tracker", "commands", "tracker", f"{{variable}}=events.txt {_RUN}")
_plugin("command", "A command", "commands", "command", "mleredux {name}")


def render(
    templates: Sequence[str], name: str, folder: Path, words: Mapping[str, str] = MappingProxyType({})
) -> list[Path]:
    """Write the files of templates, with the name filled in, to a new folder.

    Args:
        templates: Folders of templates; a file in a later folder replaces the file of the same name in an earlier one.
        name: A valid name (`check_name`).
        folder: The folder to create.
        words: Other values to fill in.

    Returns:
        The paths of the written files.
    """
    named = {"name": name, "package": name.replace("-", "_"), "title": name.replace("-", " ").capitalize()}
    words = {**words, **named}
    sources = {path.relative_to(_TEMPLATES / part): path for part in templates for path in _files(_TEMPLATES / part)}
    written = []
    for place, path in sorted(sources.items()):
        relative = str(place).removesuffix(_SUFFIX).replace("__package__", words["package"])
        text = path.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace("{{" + word + "}}", value)
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _files(template: Path) -> list[Path]:
    return sorted(template.rglob(f"*{_SUFFIX}"))


def check_name(name: str) -> None:
    """Check that a name is valid as the name of a distribution, a package and an id.

    Raises:
        click.BadParameter: The name is invalid; the message states why.
    """
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        rule = f"use lowercase letters, digits, single hyphens; start with a letter; at most {_LONGEST} characters"
        raise click.BadParameter(f"{name!r} is not a valid name; {rule}.", param_hint="NAME")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in ("mleredux", "tests"):
        raise click.BadParameter(f"{name!r} is reserved in Python; choose another.", param_hint="NAME")


def _write(
    ctx: click.Context,
    templates: Sequence[str],
    kind: str,
    name: str,
    parent: Path,
    words: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    check_name(name)
    installed = catalogue(ctx)
    if name in installed.entries(kind) or any(plugin.name == name for plugin in installed.plugins):
        raise MlereduxError(
            f"{name!r} is already installed, as a plugin or among the {kind}.", hint="Choose another name."
        )
    folder = parent / name
    if folder.exists():
        raise MlereduxError(
            f"{folder} already exists; nothing was written.", hint="Choose another name, or another --output."
        )
    with file_errors(MlereduxError, f"{folder} can't be written", "Choose another --output."):
        files = render(templates, name, folder, words)
    for path in files:
        click.echo(f"wrote {path}")
    return folder


def _print_next(folder: Path, run: str) -> None:
    place = str(folder) if folder.is_absolute() else f"./{folder}"
    click.echo(f"\nNext:\n  pip install -e {shlex.quote(f'{place}[test]')}\n  pytest {shlex.quote(place)}\n  {run}")
