"""`mleredux server downgrade|backup|restore|audit`: maintain the database of a service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from mleredux.plugin.command import Duration, print_json, print_table

from mleredux_server.cli.context import Place, placed


@click.command()
@click.argument("revision")
@placed
def downgrade(at: Place, revision: str) -> None:
    """Downgrade the database to an earlier revision, e.g. 0010, for an earlier version of the server.

    Stop the server, and make a backup first: data that the earlier revision can't store is deleted.
    """
    from mleredux_server.database import REVISIONS

    with at.stopped(), at.opened() as database:
        if revision not in REVISIONS:
            raise MlereduxError(f"There is no revision {revision!r}.", hint=f"Use one of {', '.join(REVISIONS)}.")
        database.migrate(revision, down=True)
        at.done({"database": database.shown, "revision": revision}, f"{database.shown} is at revision {revision}.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@placed
def backup(at: Place, file: Path) -> None:
    """Back up the whole database to a file, even while the server runs; copy the runs directory afterwards."""
    from mleredux_server.operations import backup as backups

    with at.opened() as database:
        counts = backups.backup(database, file)
    rows = sum(counts.values())
    at.done({"file": str(file), "rows": counts}, f"{file} has {counted(rows, 'row')}; protect it like the database.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@placed
def restore(at: Place, file: Path) -> None:
    """Restore a backup into an empty SQLite or PostgreSQL database, before the server starts."""
    from mleredux_server.operations import backup as backups

    with at.stopped(), at.opened(fresh=True) as database:
        counts = backups.restore(database, file)
        at.done({"rows": counts}, f"Restored {counted(sum(counts.values()), 'row')} to {database.shown}.")


@click.command("rotate-key")
@placed
def rotate_key(at: Place) -> None:
    """Encrypt the secrets of users, webhooks and runs with another key: MLEREDUX_SECRETS_KEY='NEW FORMER'.

    Stop the server first, and start it with only the new key afterwards. `salt` as the former key means the
    installation's salt, which encrypts values if this variable is not set.
    """
    from sqlalchemy import select

    from mleredux_server.accounts.accounts import note
    from mleredux_server.accounts.passed_secrets import renew_values
    from mleredux_server.database.tables import Secret, Webhook

    with at.stopped(), at.opened() as database, database.writing() as session:
        service = at.service()
        secrets, hooks = session.scalars(select(Secret)).all(), session.scalars(select(Webhook)).all()
        for secret in secrets:
            secret.value = service.vault.renew(f"{secret.owner}:{secret.name}", secret.value)
        for hook in hooks:
            hook.secret = service.vault.renew(f"{hook.project_id}:{hook.id}", hook.secret)
        counts = {"secrets": len(secrets), "webhooks": len(hooks), "runs": renew_values(service)}
        note(session, None, "key.rotate", "secrets")
    words = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    at.done(counts, f"Encrypted again: {words}. Start the server with the new key alone.")


@click.command()
@click.option("--user", "user_name", metavar="NAME", help="Only changes by this user.")
@click.option("--action", metavar="NAME", help="Only this action, e.g. token.create, or all of a kind, e.g. token.")
@click.option("--since", type=Duration(), metavar="TIME", help="Only changes within this time, e.g. 12h or 30d.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Maximum number.")
@placed
def audit(at: Place, user_name: str | None, action: str | None, since: float | None, limit: int) -> None:
    """Show the audit log: who changed what, newest first."""
    rows = at.administer(lambda database: database.changes(user_name, action, since, limit))
    print_table(rows, ("time", "user", "action", "target"), as_json=at.as_json)


@click.command()
@click.argument("rules", nargs=-1, required=True, metavar="[PROJECT=]TIME...")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option(
    "--store", metavar="URL", envvar="MLEREDUX_STORE", help="Object store of runs that are no longer on this machine."
)
@placed
def retention(at: Place, rules: tuple[str, ...], dry_run: bool, store: str | None) -> None:
    """Delete runs that ended long ago: `90d team=30d lab=forever`; pinned runs are kept."""
    from mleredux_server.operations.retention import expired, read_rules, remove

    wanted = read_rules(rules)
    with at.opened() as database:
        if dry_run:
            with database.reading() as session:
                deleted = expired(session, wanted)
        else:
            deleted = remove(at.service(store=store), wanted)
    rows = [{**asdict(run), "ended_at": run.ended_at.isoformat()} for run in deleted]
    if at.as_json:
        print_json({"dry_run": dry_run, "runs": rows})
        return
    print_table(rows, ("id", "project", "ended_at", "disk_mb"))
    size = sum(run.disk_mb for run in deleted)
    click.echo(f"{'Would delete' if dry_run else 'Deleted'} {counted(len(deleted), 'run')}, {size} MB.", err=True)
