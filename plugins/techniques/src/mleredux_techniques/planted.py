"""`mleredux planted`: publish the commitment to the secret of planted seeds, and reveal the secret."""

from __future__ import annotations

import click
from mleredux.errors import MlereduxError
from mleredux.plugin.command import CommandGroup, json_option, print_json

_WARNING = "Anyone who knows it can compute the answers of all `planted-SEED` and `synthetic-SEED` tasks."


@click.group("planted", cls=CommandGroup, renamed={"commitment": "commit", "open": "reveal", "verify": "check"})
def command() -> None:
    """Commit to the secret of planted seeds, and reveal it when the results are published."""


@command.command("commit")
@json_option
def show(as_json: bool) -> None:
    """Print the commitment stored in the results of planted tasks: the SHA-256 of the secret."""
    from mleredux_techniques._kit.planting.seeds import commitment, planting_salt

    digest = commitment(planting_salt())
    print_json({"commitment": f"sha256:{digest}"}) if as_json else click.echo(f"sha256:{digest}")


@command.command("reveal")
@click.option("--yes", is_flag=True, help="Confirm; this reveals the answers of planted tasks.")
@json_option
def reveal(yes: bool, as_json: bool) -> None:
    """Print the secret of planted seeds, for others to verify. It reveals nothing about the installation's salt."""
    from mleredux_techniques._kit.planting.seeds import commitment, planting_salt

    if not yes:
        raise MlereduxError(_WARNING, hint="Add --yes to print it.")
    salt = planting_salt()
    opened = {"secret": salt.hex(), "commitment": f"sha256:{commitment(salt)}"}
    print_json(opened) if as_json else click.echo(opened["secret"])


@command.command("check")
@click.argument("secret")
@click.argument("commitment")
def verify(secret: str, commitment: str) -> None:
    """Check that SECRET, as revealed, matches COMMITMENT in a report."""
    from mleredux_techniques._kit.planting import seeds

    try:
        digest = seeds.commitment(bytes.fromhex(secret))
    except ValueError:
        raise MlereduxError(
            "The secret is not hexadecimal.", hint="Use the output of `mleredux planted reveal`."
        ) from None
    if f"sha256:{digest}" != f"sha256:{commitment.removeprefix('sha256:').lower()}":
        raise MlereduxError("The secret does not match the commitment.", hint="It is from another installation.")
    click.echo("The secret matches the commitment.")
