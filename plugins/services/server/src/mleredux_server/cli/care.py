"""`mleredux server downgrade|backup|restore|audit`: maintain the database of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from mleredux.plugin.command import Duration, print_table

from mleredux_server.cli.context import done, opened, placed, reading, service_at, settings_of


@contextmanager
def stopped(runs_dir: str | None) -> Iterator[None]:
    """Keep servers from using the runs directory meanwhile.

    Raises:
        MlereduxError: A server is running.
    """
    from mleredux_server.operations.address import alone

    with alone(settings_of(runs_dir)):
        yield


@click.command()
@click.argument("revision")
@placed
def downgrade(revision: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Downgrade the database to an earlier revision, e.g. 0010, for an earlier version of the server.

    Stop the server, and make a backup first: data that the earlier revision can't store is deleted.
    """
    from mleredux.errors import MlereduxError

    from mleredux_server.database import REVISIONS

    with stopped(runs_dir), opened(runs_dir, database) as found:
        if revision not in REVISIONS:
            raise MlereduxError(f"There is no revision {revision!r}.", hint=f"Use one of {', '.join(REVISIONS)}.")
        found.migrate(revision, down=True)
        done({"database": found.shown, "revision": revision}, f"{found.shown} is at revision {revision}.", as_json)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@placed
def backup(file: Path, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Back up the whole database to a file, even while the server runs; copy the runs directory afterwards."""
    from mleredux_server.operations.backup import backup as write

    with opened(runs_dir, database) as found:
        counts = write(found, file)
    rows = sum(counts.values())
    done({"file": str(file), "rows": counts}, f"{file} has {rows} rows; protect it like the database.", as_json)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@placed
def restore(file: Path, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Restore a backup into an empty SQLite or PostgreSQL database, before the server starts."""
    from mleredux_server.operations.backup import restore as read

    with stopped(runs_dir), opened(runs_dir, database, fresh=True) as found:
        counts = read(found, file)
        done({"rows": counts}, f"Restored {sum(counts.values())} rows to {found.shown}.", as_json)


@click.command("rotate-key")
@placed
def rotate_key(runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Encrypt the secrets of users, webhooks and runs with another key: MLEREDUX_SECRETS_KEY='NEW FORMER'.

    Stop the server first, and start it with only the new key afterwards. `salt` as the former key means the
    installation's salt, which encrypts values if this variable is not set.
    """
    from sqlalchemy import select

    from mleredux_server.accounts.accounts import note
    from mleredux_server.accounts.lent import renew_lent
    from mleredux_server.database.tables import Secret, Webhook

    with stopped(runs_dir), opened(runs_dir, database) as found, found.writing() as session:
        service = service_at(runs_dir, database=database)
        secrets, hooks = session.scalars(select(Secret)).all(), session.scalars(select(Webhook)).all()
        for secret in secrets:
            secret.value = service.vault.renew(f"{secret.owner}:{secret.name}", secret.value)
        for hook in hooks:
            hook.secret = service.vault.renew(f"{hook.project_id}:{hook.id}", hook.secret)
        counts = {"secrets": len(secrets), "webhooks": len(hooks), "runs": renew_lent(service)}
        note(session, None, "key.rotate", "secrets")
    words = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    done(counts, f"Encrypted again: {words}. Start the server with the new key alone.", as_json)


@click.command()
@click.option("--user", "user_name", metavar="NAME", help="Only changes by this user.")
@click.option("--action", metavar="NAME", help="Only this action, e.g. token.create, or all of a kind: token.")
@click.option("--since", type=Duration(), metavar="TIME", help="Only changes within this time, e.g. 12h or 30d.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Maximum number.")
@placed
def audit(
    user_name: str | None,
    action: str | None,
    since: float | None,
    limit: int,
    runs_dir: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Show the audit log: who changed what, newest first."""
    from datetime import timedelta

    from mleredux_server.database.tables import now
    from mleredux_server.operations.audit import Changes, changes

    with reading(runs_dir, database) as session:
        after = now() - timedelta(seconds=since) if since is not None else None
        wanted = Changes(user=user_name, action=action, after=after)
        rows = [one.model_dump(mode="json") for one in changes(session, wanted, limit)]
    print_table(rows, ("time", "user", "action", "target"), as_json=as_json)


@click.command()
@click.argument("rules", nargs=-1, required=True, metavar="[PROJECT=]TIME...")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option(
    "--store", metavar="URL", envvar="MLEREDUX_STORE", help="Object store of runs that are no longer on this machine."
)
@placed
def retention(
    rules: tuple[str, ...], dry_run: bool, store: str | None, runs_dir: str | None, database: str | None, as_json: bool
) -> None:
    """Delete runs that ended long ago: `90d team=30d lab=forever`; pinned runs are kept."""
    from dataclasses import asdict

    from mleredux.plugin.command import print_json

    from mleredux_server.operations.retention import expired, read_rules, remove

    wanted = read_rules(rules)
    with opened(runs_dir, database) as found:
        if dry_run:
            with found.reading() as session:
                gone = expired(session, wanted)
        else:
            gone = remove(service_at(runs_dir, database=database, store=store), wanted)
    rows = [{**asdict(one), "ended_at": one.ended_at.isoformat()} for one in gone]
    if as_json:
        print_json({"dry_run": dry_run, "runs": rows})
        return
    print_table(rows, ("id", "project", "ended_at", "disk_mb"))
    size = sum(one.disk_mb for one in gone)
    click.echo(f"{'Would delete' if dry_run else 'Deleted'} {len(gone)} runs, {size} MB.", err=True)
