"""The root of the command line: global options, commands by name, errors as sentences."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mleredux._core.cli.server import NO_CLIENT, Place, elsewhere, note_server, place_of, server_of, stay_here, works
from mleredux.errors import MlereduxError

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

COMMANDS: dict[str, tuple[str, Place]] = {
    "agent": ("Show agents: command, options, limits.", "both"),
    "artifacts": ("List a run's artifacts, or copy them into a folder.", "both"),
    "doctor": ("Check this machine's setup and suggest fixes.", "here"),
    "grade": ("Grade a submission file, or a submission.jsonl of MLE-bench.", "both"),
    "list": ("List tasks, techniques, agents, graders or sandboxes.", "both"),
    "logs": ("Show the log of a run, and follow it while the run is alive.", "both"),
    "new": ("Write a new task bundle or agent, a complete package.", "here"),
    "plugins": ("Show plugins, what they register, and what is wrong with them.", "here"),
    "prepare": ("Download a task's data and split it into public files and answers.", "here"),
    "run": ("Run agents on tasks, grade their submissions, keep everything.", "both"),
    "runs": ("List runs; show, cancel, delete or index them.", "both"),
    "show": ("Show a task: description, files, metric, medals.", "both"),
    "validate": ("Check that a submission is well-formed; never its score.", "both"),
}
"""Commands with their short help and their place; `mleredux._core.cli.<command>:command` is each."""


class Root(click.Group):
    """Finds commands by name, ours first, then those of plugins; with `--server`, those that work there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; `--server URL` is taken from wherever it stands."""
        return super().parse_args(ctx, note_server(ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; errors of a back end become mleredux's own."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from mleredux._core.cli.backend import explained

            told = explained(ctx, error)
            if told is None:
                raise
            raise told from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(self._helps(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        stay_here(ctx, cmd_name)
        if cmd_name not in self._helps(ctx):
            return None
        if cmd_name in COMMANDS:
            command: click.Command = importlib.import_module(f"mleredux._core.cli.{cmd_name}").command
            return command
        found: click.Command = catalogue(ctx).get("commands", cmd_name)
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with near names suggested."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            import difflib

            if server_of(ctx) is not None and not self._helps(ctx):
                ctx.fail(NO_CLIENT)
            known = self._known(ctx)
            if args[0] in known:
                ctx.fail(elsewhere(args[0], known[args[0]][1]))
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands with their short help, without importing any of them."""
        helps = self._helps(ctx)
        if not helps:
            formatter.write_paragraph()
            formatter.write_text(NO_CLIENT)
            return
        with formatter.section("Commands" if server_of(ctx) is None else "Commands on a server"):
            formatter.write_dl([(name, helps[name]) for name in sorted(helps)])

    def _helps(self, ctx: click.Context) -> dict[str, str]:
        """Commands that work where they are asked for, with their short help."""
        if server_of(ctx) is not None and not catalogue(ctx).offers("mleredux_open_backend"):
            return {}
        return {name: title for name, (title, place) in self._known(ctx).items() if works(ctx, place)}

    @staticmethod
    def _known(ctx: click.Context) -> dict[str, tuple[str, Place]]:
        """All commands, with their short help and place."""
        added = {
            name: (str(entry.ref.summary.get("title", "")), place_of(entry.ref.summary))
            for name, entry in catalogue(ctx).entries("commands").items()
            if " " not in name
        }
        return {**added, **COMMANDS}


def catalogue(ctx: click.Context) -> Catalogue:
    """The catalogue that the global options ask for."""
    from mleredux._core.plugins.catalogue import Catalogue, set_current

    root = ctx.find_root()
    found: Catalogue | None = root.obj
    if found is None:
        found = Catalogue(block=root.params.get("block") or (), load=root.params.get("load") or ())
        root.obj = found
        set_current(found)
    return found


@click.command(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Docs: README.md and docs/ of mleredux.",
)
@click.option("--block", multiple=True, metavar="NAME", help="Do not load this plugin. [env: MLEREDUX_BLOCK_PLUGINS]")
@click.option(
    "-p",
    "--plugin",
    "load",
    multiple=True,
    metavar="FILE|MODULE",
    help="Also load this plugin file or module; `.` is ./mleredux_plugins.py. [env: MLEREDUX_PLUGINS]",
)
@click.option(
    "--server",
    metavar="URL",
    expose_value=False,
    help="Run on the mleredux server at URL instead of locally. [env: MLEREDUX_SERVER]",
)
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.option("--trace", is_flag=True, help="Print each hook call on stderr. [env: MLEREDUX_TRACE]")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=lambda *a: _version(*a),
    help="Show the version.",
)
@click.pass_context
def root(ctx: click.Context, block: tuple[str, ...], load: tuple[str, ...], debug: bool, trace: bool) -> None:
    """Run ML-engineering agents on benchmark tasks and grade their submissions.

    \b
    Start with:  mleredux run digits --agent baseline
    """
    if trace:
        os.environ["MLEREDUX_TRACE"] = "1"
    catalogue(ctx)


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from mleredux import __version__

        click.echo(f"mleredux {__version__}")
        ctx.exit()


def main() -> NoReturn:
    """What the command `mleredux` calls."""
    debug = "--debug" in sys.argv[1:]
    try:
        # Where a command calls `ctx.exit`, click gives its code back instead of raising.
        ended = root.main(standalone_mode=False)
        code = ended if isinstance(ended, int) else 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except MlereduxError as error:
        if debug:
            raise
        click.echo(f"Error: {error}", err=True)
        code = error.exit_code
    except Exception as error:  # the last resort: no traceback without --debug
        if debug:
            raise
        click.echo(
            f"Error: internal error ({type(error).__name__}: {error}). Run again with --debug for the traceback.",
            err=True,
        )
        code = 70
    sys.exit(code)
