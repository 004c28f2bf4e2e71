"""`mleredux prune`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.options import Since, json_option
from mleredux._core.cli.output import print_json, print_table


@click.command()
@click.option(
    "--unused-since",
    type=Since(),
    default="30d",
    show_default=True,
    metavar="TIME",
    help="Unused since this time, or for this period: 2026-05-01, 12h, 7d.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@json_option
@click.pass_context
def command(ctx: click.Context, unused_since: datetime, dry_run: bool, as_json: bool) -> None:
    """Remove images and Python environments of agents that no run has used for 30 days.

    They are built again when an agent needs them. Runs, data and base images are kept.
    """
    from mleredux._core import disuse
    from mleredux._core.planning.plans import problem_of

    plugins = catalogue(ctx)
    known = plugins.entries("sandboxes")
    unused = disuse.unused_since(unused_since.timestamp())
    broken = {item.sandbox for item in unused if item.sandbox not in known or problem_of(plugins, item.sandbox)}
    kept = [item for item in unused if item.sandbox in broken]
    unused = [item for item in unused if item.sandbox not in broken]
    if not dry_run:
        for item in unused:
            disuse.remove(plugins, item)
    rows = [asdict(item) | {"last_used": datetime.fromtimestamp(item.last_used, UTC).isoformat()} for item in unused]
    if as_json:
        print_json({"dry_run": dry_run, "removed": rows})
        return
    if rows:
        shown = [row | {"last_used": row["last_used"][:10]} for row in rows]
        print_table(shown, ("sandbox", "name", "last_used"), give_way=("name",))
    what = "image or environment" if len(rows) == 1 else "images and environments"
    click.echo(f"{'Would remove' if dry_run else 'Removed'} {len(rows)} {what}.")
    if kept:
        click.echo(f"{len(kept)} kept: sandbox {', '.join(sorted(broken))} does not work here.", err=True)
