"""The root of the command line: global options, verbs by name, errors as sentences."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mleredux._core.cli.remote import NO_CLIENT, PREFIX, here_only, note_server, server_of, works_here
from mleredux.errors import MlereduxError

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

VERBS = {
    "agent": "Look at agents: command, options, limits.",
    "artifacts": "List a run's artifacts, or copy them somewhere.",
    "doctor": "Say what is missing on this machine, and how to mend it.",
    "grade": "Score a submission file, or a submission.jsonl of MLE-bench.",
    "list": "List tasks, techniques, agents, graders or sandboxes.",
    "logs": "Show the log of a run, following it where it is alive.",
    "new": "Write a new task bundle or agent, a complete package.",
    "plugins": "Show plugins, what they register, and what is wrong with them.",
    "prepare": "Get a task's data and split them into public files and answers.",
    "run": "Let an agent work on tasks, grade what it leaves, keep everything.",
    "runs": "List runs, show, cancel, delete or index them.",
    "show": "Show a task: description, files, metric, medals.",
    "validate": "Say whether a submission is well-formed; never its score.",
}
"""Verbs and their short help; `mleredux._core.cli.<verb>:command` is each."""


class Root(click.Group):
    """Finds verbs by name, ours first, then those of plugins; with `--server`, those that plugins work there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; `--server URL` is taken from wherever it stands."""
        return super().parse_args(ctx, note_server(ctx, args))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all verbs."""
        return sorted(self._helps(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if not works_here(ctx, cmd_name):
            if cmd_name not in self._helps(ctx):
                return None
            twin: click.Command = catalogue(ctx).get("commands", f"{PREFIX}{cmd_name}")
            return twin
        if cmd_name in VERBS:
            command: click.Command = importlib.import_module(f"mleredux._core.cli.{cmd_name}").command
            return command
        if cmd_name in self._of_plugins(ctx):
            found: click.Command = catalogue(ctx).get("commands", cmd_name)
            return found
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with near names suggested."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            import difflib

            if server_of(ctx) is not None:
                if not self._helps(ctx):
                    ctx.fail(NO_CLIENT)
                if args[0] in VERBS or args[0] in self._of_plugins(ctx):
                    ctx.fail(here_only(args[0]))
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"There is no verb {args[0]!r}.{hint}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Verbs with their short help, without importing any of them."""
        helps = self._helps(ctx)
        if not helps:
            formatter.write_paragraph()
            formatter.write_text(NO_CLIENT)
            return
        with formatter.section("Verbs" if server_of(ctx) is None else "Verbs on a server"):
            formatter.write_dl([(name, helps[name]) for name in sorted(helps)])

    def _helps(self, ctx: click.Context) -> dict[str, str]:
        """Verbs that can be used, with their short help."""
        return {**VERBS, **self._of_plugins(ctx)} if server_of(ctx) is None else self._of_plugins(ctx, PREFIX)

    def _of_plugins(self, ctx: click.Context, prefix: str = "") -> dict[str, str]:
        return {
            name.removeprefix(prefix): str(entry.ref.summary.get("title", ""))
            for name, entry in catalogue(ctx).entries("commands").items()
            if name.startswith(prefix) and " " not in name.removeprefix(prefix)
        }


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
@click.option("--block", multiple=True, metavar="NAME", help="Don't load this plugin (also MLEREDUX_BLOCK_PLUGINS).")
@click.option(
    "-p",
    "--plugin",
    "load",
    multiple=True,
    metavar="FILE|MODULE",
    help="Load a plugin file or module too; `.` is mleredux_plugins.py here (also MLEREDUX_PLUGINS).",
)
@click.option(
    "--server",
    metavar="URL",
    expose_value=False,
    help="Let this mleredux service do it instead of this machine; also behind the verb, also MLEREDUX_SERVER.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.option("--trace", is_flag=True, help="Tell each hook call on stderr (also MLEREDUX_TRACE=1).")
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
    """Let machine-learning agents do real ML engineering, grade what they leave, and learn from it.

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
        # Where a verb calls `ctx.exit`, click gives its code back instead of raising.
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
            f"Error: something unforeseen went wrong ({type(error).__name__}: {error}). Try --debug.",
            err=True,
        )
        code = 70
    sys.exit(code)
