"""Commands that were renamed: the old name works for one minor version, with a warning, and no list shows it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.plugin.command import Catalogue

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


def test_the_help_fits_on_forty_lines():
    assert len(CliRunner().invoke(root, ["--help"], terminal_width=80).stdout.splitlines()) <= 40
