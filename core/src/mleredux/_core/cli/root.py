"""The root of the command line: global options, commands by name, errors as sentences."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any, NoReturn

import click

from mleredux._core.cli.context import catalogue, explained, has_client
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.options import NO_CLIENT, Place, ignore_server_variable, note_server, server_of
from mleredux._core.cli.output import echo
from mleredux.errors import MlereduxError, PluginError, one_line, plain_faults

COMMANDS: dict[str, tuple[str, Place]] = {
    "agent": ("Show agents: command, options, limits.", "both"),
    "artifacts": ("List a run's artifacts, or copy them into a folder.", "both"),
    "doctor": ("Check this machine's setup and suggest fixes.", "machine"),
    "grade": ("Grade a submission file, or an MLE-bench submission.jsonl.", "both"),
    "list": ("List tasks, techniques, agents, graders, sandboxes or formats.", "both"),
    "logs": ("Show the log of a run, and follow it until the run has ended.", "both"),
    "plugins": ("Show plugins, what they register, and their errors.", "machine"),
    "prepare": ("Download a task's data and split it into public files and answers.", "here"),
    "prune": ("Remove images and environments that have not been used recently.", "here"),
    "run": ("Run agents on tasks, grade their submissions, store all artifacts.", "both"),
    "runs": ("List runs; show, cancel, delete or reindex them.", "both"),
    "show": ("Show a task: description, files, metric, medals.", "both"),
    "validate": ("Check that a submission is well-formed, without showing its score.", "both"),
}
"""Commands with their short help and place; each is `mleredux._core.cli.commands.<command>:command`."""

_COMMON = "Common"
"""The section whose commands the help describes; for other sections, it lists only names."""
SECTIONS = {
    _COMMON: ("list", "show", "prepare", "run", "grade", "runs", "logs", "doctor"),
    "Tasks": (),
    "Run and grade": ("validate",),
    "Results": ("artifacts",),
    "Compare": (),
    "Learn": (),
    "Servers": (),
    "Set up and extend": ("agent", "plugins", "prune"),
}
"""Sections of the help with the core's commands; plugins specify theirs in their `Ref` (`{"section": "Compare"}`)."""
_OTHERS = "Other commands"
_INSPECTING = ("conformance", "doctor", "list", "plugins")
"""Commands that list the errors of plugins; others refuse to work without a plugin that the user requested."""


class Root(CommandGroup):
    """Finds commands by name, first the core's, then those of plugins; with `--server`, those for servers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments as click does, but accept `--server URL` in any position."""
        return super().parse_args(ctx, note_server(ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command as click does, but convert errors of a backend to mleredux's own, and say where an option
        of a group belongs."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if isinstance(error, click.BadParameter) and error.message.endswith(" range."):
                raise click.BadParameter(error.message[:-7] + ".", error.ctx, error.param, error.param_hint) from error
            converted = _misplaced(ctx, error) if isinstance(error, click.NoSuchOption) else explained(ctx, error)
            if converted is None:
                raise
            raise converted from error

    def own(self) -> dict[str, tuple[str, Place]]:
        """Return the commands of the core."""
        return COMMANDS

    def shown(self, ctx: click.Context) -> dict[str, str]:
        """Return the available commands, as for any group; none for a server whose client is not installed."""
        if server_of(ctx) is not None and not has_client(ctx):
            return {}
        return super().shown(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name in COMMANDS or server_of(ctx) is not None:
            ignore_server_variable(ctx, self.known(ctx).get(cmd_name, ("", "here"))[1])
        if cmd_name in COMMANDS and cmd_name in self.shown(ctx):
            command: click.Command = importlib.import_module(f"mleredux._core.cli.commands.{cmd_name}").command
            return command
        return super().get_command(ctx, cmd_name)

    def explain_missing(self, ctx: click.Context, name: str) -> None:
        """Reject a command as any group does, and suggest similar names."""
        if server_of(ctx) is not None and not self.shown(ctx):
            ctx.fail(NO_CLIENT)
        super().explain_missing(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Format the common commands, then the names of others by section; if the server's client is missing, add how
        to install it."""
        shown = self.shown(ctx)
        if not shown:
            formatter.write_paragraph()
            return formatter.write_text(NO_CLIENT)
        core = {name: section for section, names in SECTIONS.items() for name in names}
        added = catalogue(ctx).entries("commands")
        rows: dict[str, list[str]] = {section: [] for section in SECTIONS}
        for name in [name for name in (*core, *sorted(shown.keys() - core.keys())) if name in shown]:
            section = core.get(name) or str(added[name].ref.summary.get("section", _OTHERS))
            rows.setdefault(section, []).append(name)
        where = " on a server" if server_of(ctx) is not None else ""
        with formatter.section(f"Common commands{where}"):
            formatter.write_dl([(name, shown[name]) for name in rows.pop(_COMMON)])
        with formatter.section(f"Other commands{where}, each with --help"):
            formatter.write_dl([(section, ", ".join(names)) for section, names in rows.items() if names])


def _misplaced(root_context: click.Context, error: click.NoSuchOption) -> Exception | None:
    """Return an explanation for an option that the command lacks, but the program or the command's group has.

    For a short option that neither has, the long options of the command that begin with this letter are suggested.
    """
    for above in filter(None, (error.ctx and error.ctx.parent, root_context)):
        if error.ctx is not above and any(error.option_name in param.opts for param in above.command.params):
            where = f"write it directly after `{above.command_path}`"
            return click.UsageError(f"{error.option_name} is not an option of this command; {where}.", error.ctx)
    if error.ctx and len(error.option_name) == 2:
        options = [param for param in error.ctx.command.params if param.get_help_record(error.ctx)]
        names = {name for option in options for name in option.opts}
        if longer := " or ".join(sorted(name for name in names if name.startswith(f"-{error.option_name}"))):
            return click.UsageError(f"{error.message} Did you mean {longer}?", error.ctx)
    return None


@click.command(
    cls=Root, context_settings={"help_option_names": ["-h", "--help"]}, epilog="Docs: README.md and docs/ of mleredux."
)
@click.option("--block", multiple=True, metavar="NAME", help="Do not load this plugin.")
@click.option("-p", "--plugin", "load", multiple=True, metavar="FILE|MODULE", help="Also load this plugin.")
@click.option("--server", metavar="URL", expose_value=False, help="Use the mleredux server at URL.")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.option("--trace", is_flag=True, help="Print each hook call on stderr.")
@click.version_option(package_name="mleredux", message="%(package)s %(version)s", help="Show the version.")
@click.pass_context
def root(ctx: click.Context, block: tuple[str, ...], load: tuple[str, ...], debug: bool, trace: bool) -> None:
    """Run ML-engineering agents on benchmark tasks and grade their submissions.

    \b
    Start with:  mleredux run digits --agent baseline
    """
    if trace:
        os.environ["MLEREDUX_TRACE"] = "1"
    installed = catalogue(ctx)
    requested = [plugin for plugin in installed.plugins if plugin.source in ("file", "option")]
    failed = [plugin.errors[0] for plugin in requested if not installed.load_plugin(plugin) and plugin.errors]
    if failed and ctx.invoked_subcommand not in _INSPECTING:
        raise PluginError(failed[0])


def main() -> NoReturn:
    """Run the command that `sys.argv` names, and exit with its code."""
    warnings.formatwarning = lambda message, *_args, **_more: f"Warning: {message}\n"
    try:
        if "_MLEREDUX_COMPLETE" in os.environ:
            importlib.import_module("mleredux._core.cli.completion")
        # If a command calls `ctx.exit`, click returns its code instead of raising.
        with plain_faults():
            ended = root.main(standalone_mode=False)
        code = ended if isinstance(ended, int) else 0
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        exec("")  # otherwise CPython ends by SIGINT if it interrupted code that exec() ran
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception as error:  # any exception: no traceback without --debug
        if "--debug" in sys.argv[1:]:
            raise
        internal = f"internal error ({one_line(error)}). Run again with --debug for the traceback."
        echo(f"Error: {error if isinstance(error, MlereduxError) else internal}", err=True)
        code = getattr(error, "exit_code", 70)
    sys.exit(code)
