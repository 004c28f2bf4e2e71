"""Commands and options that messages, help and docstrings name exist, where the reader is sent."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from mleredux._core.cli.context import catalogue
from mleredux._core.cli.root import root

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for top in ("core", "kits", "plugins") for path in ROOT.glob(f"{top}/**/src/**/*.py"))
_COMMAND = re.compile(r"`(mleredux [a-z][^`]*)`")
_PLACEHOLDER = "PLACEHOLDER"
OF_OTHERS = {"-r", "--mount", "--here", "--recurse-submodules", "--agent-kwarg"}
"""Options of other programs: pip, engines, notebooks, git, Harbor."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a program, with a placeholder for each value that is put into one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else f" {_PLACEHOLDER} " for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def hints() -> dict[str, str]:
    """Each command that is named somewhere, with one place; files without any are not parsed, which takes seconds."""
    found: dict[str, str] = {}
    for path in SOURCES:
        for line, text in texts(path) if "mleredux " in path.read_text(encoding="utf-8") else ():
            for command in _COMMAND.findall(text):
                found.setdefault(" ".join(command.split()), f"{path.relative_to(ROOT)}:{line}")
    return found


HINTS = hints()


def test_hints_are_found() -> None:
    assert len(HINTS) > 60


@pytest.mark.parametrize("command", HINTS)
def test_a_command_that_is_named_exists_with_its_options(command: str) -> None:
    where = HINTS[command]
    try:
        words = shlex.split(re.sub(r"[…]|\.\.\.|\[|\]", " ", command).partition(" | ")[0])[1:]
    except ValueError:
        pytest.fail(f"{where}: `{command}` can't be typed")
    here: click.Command = root
    context = click.Context(root, info_name="mleredux")
    while words and isinstance(here, click.Group) and not words[0].startswith("-"):
        if _PLACEHOLDER in words[0] or words[0].isupper():
            return  # the command itself is chosen when it is printed
        name = words[0].partition("|")[0]
        below = here.get_command(context, name)
        if below is None and f"{context.info_name} {name}" in catalogue(context).entries("commands"):  # of servers only
            below = catalogue(context).get("commands", f"{context.info_name} {name}")
        if below is None and here.invoke_without_command:
            break
        assert below is not None, f"{where}: there is no command `{words[0]}` of `{command}`"
        context = click.Context(below, info_name=words[0], parent=context)
        here = below
        words = words[1:]
    known = {option for param in (*here.params, *root.params) for option in (*param.opts, *param.secondary_opts)}
    named = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    lacking = [word for word in named if word not in known | {"--help", "--server"}]
    assert not lacking, f"{where}: `{command}` has no option {', '.join(lacking)}"


def every_option(command: click.Command, context: click.Context) -> Iterator[str]:
    """The options of a command and of all below it."""
    for param in command.params:
        yield from (*param.opts, *param.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from every_option(below, click.Context(below, info_name=name, parent=context))


def test_an_option_that_is_named_alone_exists() -> None:
    context = click.Context(root, info_name="mleredux")
    known = {*every_option(root, context), "--help", "--server"}
    lacking = {}
    for path in SOURCES:
        for line, text in texts(path):
            for option in re.findall(r"`(--?[a-z][a-z-]*)(?: [\w./-]+)?`", text):
                if option not in known and option not in OF_OTHERS:
                    lacking[option] = f"{path.relative_to(ROOT)}:{line}"
    assert not lacking


@pytest.mark.parametrize("name", ["my files", "o'brien", "$(date)", "a;b", "x `y`"])
def test_a_printed_command_names_files_so_that_a_shell_reads_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    place.mkdir()
    for script in ("a.py", "b.py"):
        (place / script).touch()
    (place / "run.json").write_text("{}")
    monkeypatch.setattr("mleredux_experiments.results.grading_reports.import_reports", lambda *_arguments: [])

    def printed(*arguments: str) -> str:
        done = CliRunner().invoke(root, arguments)
        return done.output + str(done.exception)

    runs = printed("runs", "--runs-dir", str(tmp_path))
    imported = printed("experiment", "import", str(place / "run.json"), "--output", str(place))
    several = printed("run", "digits", "--agent", str(place), "--runs-dir", str(tmp_path / "runs"))
    for text, begin, last in (
        (runs, "mleredux runs show ", name),
        (imported, "mleredux leaderboard --reports ", str(place)),
        (several, "Choose one: `--agent ", str(place / "a.py")),
    ):
        _, found, rest = text.partition(begin)
        assert found, text
        assert shlex.split(rest.partition("\n")[0].rpartition("`")[0].split("`, ")[0].split("`; ")[0]) == [last]
