"""`mleredux certify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from mleredux.errors import MlereduxError, file_errors
from mleredux.models.base import read_json
from mleredux.plugin.command import DataStore, catalogue, data_dir_option, echo
from mleredux.plugin.files import write_atomically

FILE = "certificate.json"


@click.command("certify")
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path), help="Folder for TASK.json files.")
@click.option("--check", is_flag=True, help="Check TASKs, which are certificates or exported tasks with one.")
@data_dir_option
@click.pass_context
def command(ctx: click.Context, tasks: tuple[str, ...], output: Path | None, check: bool, data_dir: str | None) -> None:
    """Certify generated TASKs, or check certificates.

    The exit code is 3 if a task is not sound, or a certificate is wrong.

    A certificate has twelve fields. Among other things, it shows that regenerated data is identical, that oracles reach
    the best score and agents that learn nothing the worst, that invalid submissions are rejected, and that three
    different models are accepted. It is bound to the digest of the data; `--check` measures everything again.
    """
    from mleredux_audit_floor.certificate import certify, contradictions

    plugins, store, failed = catalogue(ctx), DataStore(data_dir), False
    for name in tasks:
        if check:
            path = Path(name) / FILE if Path(name).is_dir() else Path(name)
            certificate = _read(path)
            bundle = path.parent / "tests" / "data" / str(certificate.get("task")) / "prepared"
            wrong = contradictions(certificate, plugins, store, bundle if bundle.is_dir() else None)
            echo(f"{path}: {' '.join(wrong) or 'The certificate is correct.'}")
            failed |= bool(wrong)
            continue
        certificate = certify(plugins.task(name), plugins, store)
        failed |= not certificate["sound"]
        text = json.dumps(certificate, indent=1, allow_nan=False) + "\n"
        if output is None:
            click.echo(text, nl=False)
        else:
            output.mkdir(parents=True, exist_ok=True)
            write_atomically(output / f"{name}.json", text)
            echo(f"{output / name}.json: {'sound' if certificate['sound'] else 'not sound'}")
    ctx.exit(3 if failed else 0)


def _read(path: Path) -> dict[str, Any]:
    hint = "Make one with `mleredux certify`."
    with file_errors(MlereduxError, f"{path} is not a certificate", hint, ValueError):
        certificate = read_json(path.read_bytes())
    return certificate if isinstance(certificate, dict) else {}
