"""`mleredux bundle` and `mleredux verify-bundle`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from mleredux.models.formats import score
from mleredux.plugin.command import catalogue, json_option, print_facts, print_json, print_table, runs_dir_option, safe

if TYPE_CHECKING:
    from mleredux_audit_bundle.verification import RunCheck, Verification

_AGAIN = {None: "not graded", True: "same", False: "different"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("bundle")
@click.argument("runs", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The archive.")
@click.option("--no-submissions", is_flag=True, help="Include only the hashes of submissions.")
@runs_dir_option
@json_option
def bundle(runs: tuple[str, ...], output: Path, no_submissions: bool, runs_dir: str | None, as_json: bool) -> None:
    """Write the results of RUNS into one signed archive.

    It is signed with the key of this installation, which is created on first use.
    """
    from mleredux.plugin.artifact import RunStore

    from mleredux_audit_bundle.archive import write_bundle
    from mleredux_audit_bundle.keys import installation_key, public_key, public_pem

    store = RunStore(runs_dir)
    chosen = {run.id: run for run in map(store.get, runs)}  # each run once
    signer = installation_key()
    write_bundle(chosen.values(), signer, output, submissions=not no_submissions)
    key = public_key(public_pem(signer), "The signing key").keyid
    if as_json:
        print_json({"path": str(output), "runs": list(chosen), "key": key, "bytes": output.stat().st_size})
    else:
        print_facts({"bundle": str(output), "runs": len(chosen), "key": key})
        click.echo(f"Check it anywhere: mleredux verify-bundle {output.name}")


@click.command("verify-bundle")
@click.argument("file", type=_FILE)
@click.option(
    "--answers",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Grade the submissions again, with the prepared tasks in this data directory.",
)
@click.option("--key", "keys", type=_FILE, multiple=True, help="Public key (PEM) of the required signer.")
@json_option
@click.pass_context
def verify(ctx: click.Context, file: Path, answers: Path | None, keys: tuple[Path, ...], as_json: bool) -> None:
    """Check the archive FILE: signature, hashes and, with --answers, the grades. Exit code 3 if anything is wrong."""
    from mleredux_audit_bundle.keys import public_key
    from mleredux_audit_bundle.verification import verify_bundle

    trusted = [public_key(path.read_bytes(), str(path)) for path in keys] or None
    done = verify_bundle(file, keys=trusted, answers=answers, catalogue=catalogue(ctx) if answers else None)
    if as_json:
        print_json({"verified": done.verified, **asdict(done)})
    else:
        _show(done, regraded=answers is not None)
    ctx.exit(0 if done.verified else 3)


def _show(done: Verification, *, regraded: bool) -> None:
    trust = {None: "valid (pass --key to require a signer)", True: "valid, by a given key", False: "not by a given key"}
    print_facts({"signature": trust[done.trusted] if done.key else "invalid", "key": done.key, "made": done.created_at})
    rows = [{**asdict(run), "again": _AGAIN[run.reproduced], **_figures(run)} for run in done.runs]
    here = ("again", "score", "medal", "percentile") if regraded else ()
    if rows:
        print_table(rows, ("id", "task", *here, "claimed_score", "claimed_medal", "agent"), give_way=("id", "agent"))
        recomputed = " except again, score, medal and percentile" if regraded else ""
        click.echo(f"All values{recomputed} are the signer's claims.")
    of_runs = [f"{run.id}: {sentence}" for run in done.runs for sentence in (*run.problems, *run.notes)]
    for sentence in (*of_runs, *done.problems):
        click.echo(safe(sentence))
    click.echo("verified" if done.verified else "not verified")


def _figures(run: RunCheck) -> dict[str, str | None]:
    scores = {"score": run.score, "claimed_score": run.claimed_score}
    figures = {name: None if value is None else score(value) for name, value in scores.items()}
    return {**figures, "percentile": None if run.percentile is None else f"{run.percentile:.0f} %"}
