"""Former names of commands, options, variables and methods work until the next minor version, with a warning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.moved import METHODS, OPTIONS, VARIABLES, variable
from mleredux._core.plugins.summaries import check_and_summarise
from mleredux.plugin.command import Catalogue
from mleredux.plugin.sandbox import Finding

RENAMED = {
    former: name
    for name, entry in Catalogue().entries("commands").items()
    for former in entry.ref.summary.get("formerly", ())
} | {
    "runs index": "runs reindex",
    "planted commitment": "planted commit",
    "planted open": "planted reveal",
    "planted verify": "planted check",
}
"""Former names with the present ones: those of plugins, and those within a group."""


def test_commands_of_plugins_name_their_former_names():
    assert {"start", "submit", "finish", "curriculum", "techniques class", "verify", "runs release"} < RENAMED.keys()


@pytest.mark.parametrize("former", sorted(RENAMED))
def test_a_former_name_runs_the_command_with_a_warning(former: str):
    old = CliRunner().invoke(root, [*former.split(), "--help"])
    new = CliRunner().invoke(root, [*RENAMED[former].split(), "--help"])

    assert old.exit_code == new.exit_code == 0
    assert f"`mleredux {former}` is now `mleredux {RENAMED[former]}`" in old.stderr and not new.stderr
    assert old.stdout.replace(former, RENAMED[former], 1).split() == new.stdout.split()


@pytest.mark.parametrize("former", sorted(RENAMED))
def test_no_list_shows_a_former_name(former: str):
    *group, name = former.split()
    page = CliRunner().invoke(root, [*group, "--help"]).stdout

    assert name not in [word.strip(",") for line in page.splitlines() for word in line.split()[:1]]


def options(group: click.Group, ctx: click.Context, *path: str) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each command that has a renamed option, with the former name and the present one."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        names = {name for param in command.params for name in param.opts}
        for old, new in OPTIONS.items():
            if new in names and old not in names:
                yield (*path, name), old, new
        if isinstance(command, click.Group):
            yield from options(command, click.Context(command, ctx, info_name=name), *path, name)


RENAMED_OPTIONS = list(options(root, click.Context(root, info_name="mleredux")))


def test_options_that_were_renamed_are_found():
    former = {(" ".join(path), old) for path, old, _ in RENAMED_OPTIONS}
    assert {
        ("run", "-o"),
        ("grade", "--output-dir"),
        ("artifacts", "--download"),
        ("view", "--export"),
        ("classroom", "--into"),
        ("experiment import", "--into"),
        ("new agent", "--path"),
        ("findings", "--most"),
        ("openenv", "--sessions"),
        ("server token create", "--expires"),
        ("human start", "-o"),
        ("bisect", "-o"),
    } <= former


@pytest.mark.parametrize("attached", [False, True])
@pytest.mark.parametrize(("path", "old", "new"), RENAMED_OPTIONS)
def test_a_former_option_works_with_a_warning(path: tuple[str, ...], old: str, new: str, attached: bool):
    words = [f"{old}=7" if old.startswith("--") else f"{old}7"] if attached else [old, "7"]
    asked = CliRunner().invoke(root, [*path, *words, "--help"])
    after = CliRunner().invoke(root, [*path, "--help", "--", *words])

    assert asked.exit_code == 0 and old not in re.findall(r"(?<!\S)--?[\w-]+", asked.stdout)
    goes = "the old name will be removed in 0.4."
    assert asked.stderr == f"`{old}` of `mleredux {' '.join(path)}` is now `{new}`; {goes}\n"
    assert after.exit_code == 0 and not after.stderr


def test_the_help_fits_on_forty_lines():
    assert len(CliRunner().invoke(root, ["--help"], terminal_width=80).stdout.splitlines()) <= 40


@pytest.mark.parametrize(("name", "former"), VARIABLES.items())
def test_a_former_variable_works_with_a_warning_unless_the_present_one_is_set(
    name: str, former: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(former, "/before")
    with pytest.warns(FutureWarning, match=f"^{former} is now {name}; the old name will be removed in 0.4.$"):
        assert variable(name) == "/before"
    monkeypatch.setenv(name, "/now")
    assert variable(name) == "/now"


class Former:
    """An executor written for 0.2."""

    id, title, allocates = "former", "An executor", False

    def check(self) -> list[Finding]:
        return []

    nodes = give = news = stop = pull = lambda self, *values: values


def test_methods_have_their_former_names_too_with_a_warning():
    executor: Any = Former()
    with pytest.warns(DeprecationWarning) as warned:
        assert check_and_summarise("executors", executor)["id"] == "former"

    pairs = METHODS["executors"].items()
    assert [str(one.message) for one in warned] == [
        f"Former.{old} is now {new}; the old name will be removed in 0.4." for old, new in pairs
    ]
    assert all(getattr(executor, new)("a job") == ("a job",) for _, new in pairs)
