"""`--server URL`: verbs that a plugin works on a server, found by name wherever the option stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.remote import note_server, server_of
from mleredux._core.cli.root import root

PLUGIN = """
import click
from mleredux import hookimpl
from mleredux._core.cli.remote import server_of
from mleredux._core.plugins import Ref

@click.command("list")
@click.argument("kind", default="tasks")
@click.option("--json", "as_json", is_flag=True)
@click.pass_context
def listing(ctx, kind, as_json):
    "Show what a server has."
    click.echo(f"{kind} of {server_of(ctx)}, {as_json}")

@hookimpl
def mleredux_register_commands():
    return [Ref("remote list", f"{__name__}:listing", {"title": "Show what a server has."})]
"""
URL = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def only_this_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_BLOCK_PLUGINS", "client")
    monkeypatch.delenv("MLEREDUX_SERVER", raising=False)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "remote_verbs.py").write_text(PLUGIN)
    monkeypatch.setenv("MLEREDUX_PLUGINS", str(tmp_path / "remote_verbs.py"))


def mleredux(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--server", URL, "list", "agents", "--json"),
        ("list", "--server", URL, "agents", "--json"),
        ("list", "agents", "--json", f"--server={URL}"),
        ("--server", "http://elsewhere", "list", "agents", "--json", "--server", URL),
    ],
)
def test_the_server_may_be_named_anywhere(arguments: tuple[str, ...]) -> None:
    assert mleredux(*arguments).output == f"agents of {URL}, True\n"


@pytest.mark.usefixtures("client")
def test_the_environment_names_a_server_until_an_empty_option_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_SERVER", URL)
    assert mleredux("list").output == f"tasks of {URL}, False\n"
    assert json.loads(mleredux("list", "sandboxes", "--server=", "--json").output)


@pytest.mark.usefixtures("client")
def test_verbs_that_are_about_this_machine_heed_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_SERVER", URL)
    assert "remote_verbs" in mleredux("plugins").output
    assert "works on this machine only" in mleredux("plugins", "--server", URL).output
    assert "works on this machine only" in mleredux("prepare", "digits").output


def test_what_stands_behind_two_dashes_is_no_option_of_ours() -> None:
    ctx = click.Context(root)
    assert note_server(ctx, ["validate", "--", "--server", URL]) == ["validate", "--", "--server", URL]
    assert server_of(ctx) is None


@pytest.mark.parametrize("arguments", [("list", "--server"), ("--server", "--json", "list")])
def test_a_server_without_a_name_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    told = mleredux(*arguments)
    assert told.exit_code == 2 and "needs the URL of a server" in told.output


@pytest.mark.usefixtures("client")
def test_verbs_of_this_machine_say_so() -> None:
    told = mleredux("prepare", "digits", "--server", URL)
    assert told.exit_code == 2
    assert "`prepare` works on this machine only; leave out --server (or unset MLEREDUX_SERVER)." in told.output
    told = mleredux("lsit", "--server", URL)
    assert told.exit_code == 2 and "There is no verb 'lsit'. Did you mean list?" in told.output


@pytest.mark.usefixtures("client")
def test_help_shows_what_works_there() -> None:
    here, there = mleredux("--help").output, mleredux("--server", URL, "--help").output
    assert "--server URL" in here and "prepare" in here and "Show what a server has." not in here
    assert "Show what a server has." in there and "prepare" not in there
    assert "remote" not in here.partition("Verbs:")[2]


@pytest.mark.parametrize("verb", ["run", "nonsense"])
def test_without_the_client_it_is_said_what_to_install(verb: str) -> None:
    told = mleredux(verb, "--server", URL)
    assert told.exit_code == 2 and "pip install 'mleredux-client[cli]'" in told.output
    assert "pip install 'mleredux-client[cli]'" in " ".join(mleredux("--server", URL, "--help").output.split())


def test_help_and_lists_import_nothing_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every plugin of this environment: neither the client nor anything it needs."""
    monkeypatch.delenv("MLEREDUX_BLOCK_PLUGINS")
    program = (
        "import sys; from mleredux._core.cli.root import root; root.main(['--help'], standalone_mode=False);"
        f"root.main(['--server', {URL!r}, '--help'], standalone_mode=False);"
        "root.main(['list', 'agents', '--json'], standalone_mode=False);"
        "print([name for name in sys.modules if name.partition('.')[0] in"
        " ('httpx', 'mleredux_client', 'fastapi', 'pydantic', 'rich', 'ssl')], file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert told.stderr.splitlines()[-1] == "[]"
