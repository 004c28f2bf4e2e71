"""What commands must not import, as a run would cost several times as much."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from mleredux._core.cli.root import root

HEAVY = {"alembic", "cryptography", "docker", "fastapi", "httpx", "jinja2", "jsonschema", "matplotlib", "mlflow"} | {
    *("nbformat", "numpy", "pandas", "pygments", "rich", "scipy", "sklearn", "sqlalchemy", "structlog", "uvicorn")
}


def imported(*command: str) -> set[str]:
    """Packages that Python imports in the command's own process."""
    done = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(re.findall(r"^import time:.*\| +(\w+)", done.stderr, re.MULTILINE))


def test_a_run_imports_nothing_heavy_in_the_command_itself(tmp_path: Path) -> None:
    folders = ("--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data"))
    run = ("run", "digits", "--agent", "dummy", "--sandbox", "process", "--json", *folders)
    imported("-m", "mleredux", *run)  # prepares the data
    modules = imported("-m", "mleredux", *run)
    assert "mleredux" in modules and "mleredux_artifact_reports" in modules
    assert modules & HEAVY <= {"jinja2"}, "the page of the run is made of a template"


def test_the_list_of_commands_imports_little_beside_click() -> None:
    """Each import takes about a hundredth of the time, and `pathlib` a tenth."""
    code = "import sys; from mleredux._core.cli import program; sys.argv[1:] = ['--help']; program()"
    imported("-c", code)  # indexes the plugins
    modules = imported("-c", code)
    assert {"click", "mleredux"} <= modules
    slow = {"asyncio", "importlib_metadata", "logging", "pathlib", "pluggy", "pydantic", "subprocess", "tempfile"}
    assert not modules & (HEAVY | slow)


def commands(command: click.Command, above: click.Context | None, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command, and those of all commands below it."""
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command, parent=above, info_name=path[-1] if path else "mleredux")
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands(below, ctx, *path, name)


ON_A_SERVER = [("agent", "build"), ("runs", "wait"), ("runs", "change"), ("runs", "retry")]
HELP = """if True:
    import contextlib, io, os, sys
    import mleredux._core.cli.exit_codes  # with what nearly all commands import, which takes most of their time
    from mleredux._core.cli.root import root
    heavy, paths = {heavy}, {paths}
    for path in paths:
        if os.fork():  # so that each command is the first
            assert os.wait()[1] == 0
            continue
        with contextlib.redirect_stdout(io.StringIO()) as help:
            root.main([*path, "--help"], standalone_mode=False)
        assert help.getvalue().startswith("Usage: ")
        if imported := heavy & set(sys.modules):
            print(" ".join(path), "imports", ", ".join(sorted(imported)), flush=True)
        os._exit(0)
"""


def test_the_help_of_a_command_imports_nothing_heavy() -> None:
    paths = [*commands(root, None), *(("--server", "http://127.0.0.1:9", *path) for path in ON_A_SERVER)]
    code = HELP.format(heavy=HEAVY, paths=paths)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert len(paths) > 100 and (done.stdout, done.returncode) == ("", 0), done.stderr[-2000:]


def test_a_server_takes_its_address_before_its_libraries_are_imported() -> None:
    assert not imported("-c", "import mleredux_server.cli.serve, mleredux_server.operations.address") & HEAVY
