"""Helpers shared by the commands of `mleredux server`: opening the database, printing records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mleredux.errors import MlereduxError
from mleredux.plugin.command import Catalogue, json_option, print_json, runs_dir_option

if TYPE_CHECKING:
    from mleredux_server.database import Database
    from mleredux_server.operations.administration import Administration
    from mleredux_server.service import Service

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Place:
    """Where the administered service is, and how results are printed.

    Args:
        runs_dir: The runs directory; None means the default one.
        database: URL of the database; None means SQLite in the runs directory.
        as_json: Whether results are printed as JSON.
    """

    runs_dir: str | None
    database: str | None
    as_json: bool

    def service(self, **fields: Any) -> Service:
        """Return the service, for work on its files and database."""
        from mleredux_server.app import make_service
        from mleredux_server.settings import settings_of

        return make_service(settings_of(self.runs_dir, database=self.database, **fields), Catalogue())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep servers from using the runs directory in the meantime.

        Raises:
            MlereduxError: A server is running.
        """
        from mleredux_server.operations.address import alone
        from mleredux_server.settings import settings_of

        with alone(settings_of(self.runs_dir)):
            yield

    @contextmanager
    def opened(self, *, migrate: bool = False, fresh: bool = False) -> Iterator[Database]:
        """Open the database; errors become messages.

        Raises:
            MlereduxError: The database does not exist or is not up to date, or the request is refused.
        """
        from sqlalchemy.exc import SQLAlchemyError

        from mleredux_server.database import REVISIONS, Database
        from mleredux_server.settings import settings_of

        settings = settings_of(self.runs_dir, database=self.database)
        hint = "Specify the --runs-dir or --database of `serve`; `mleredux server migrate` creates the tables."
        if self.database is None and not (migrate or fresh) and not (settings.state_dir / "service.sqlite").is_file():
            raise MlereduxError(f"There is no service in {settings.runs_dir}.", hint=hint)
        database = Database(settings.database_url)
        try:
            if migrate:
                database.migrate()
            elif not fresh and database.revision() != REVISIONS[-1]:
                raise MlereduxError(f"The tables of {database.shown} are not up to date.", hint=hint)
            yield database
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise MlereduxError(f"The database {database.shown} can't be used: {reason}", hint="Try again.") from error
        finally:
            database.close()

    def administer(self, action: Callable[[Administration], ResultT]) -> ResultT:
        """Return the result of an action on users, tokens and projects, committed as one transaction; see `opened`."""
        from mleredux_server.operations.administration import Administration

        with self.opened() as database, database.writing() as session:
            return action(Administration(session))

    def done(self, record: dict[str, Any], sentence: str) -> None:
        """Print a sentence about the result, or JSON."""
        if self.as_json:
            print_json(record)
        else:
            click.echo(sentence)


def placed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options shared by all commands, which are passed as a `Place`."""

    @wraps(command)
    def placed_command(*, runs_dir: str | None, database: str | None, as_json: bool, **arguments: Any) -> None:
        command(Place(runs_dir, database, as_json), **arguments)

    shared, own = list(signature(placed_command, follow_wrapped=False).parameters.values())[:-1], signature(command)
    taken = [*list(own.parameters.values())[1:], *shared]
    placed_command.__signature__ = Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in taken]
    )
    database = click.option(
        "--database",
        metavar="URL",
        envvar="MLEREDUX_DATABASE",
        help="Database URL as given to `serve`.  [default: SQLite in the runs directory]",
    )
    options: Callable[..., None] = runs_dir_option(database(json_option(placed_command)))
    return options


def show_record(record: dict[str, Any], as_json: bool) -> None:
    """Print a record's fields, or JSON."""
    if as_json:
        print_json(record)
        return
    for name, value in record.items():
        if not isinstance(value, dict):
            click.echo(f"{click.style(name.ljust(12), bold=True)} {value}")
            continue
        for key, part in value.items():
            text = ", ".join(part) if isinstance(part, list) else "no limit" if part is None else part
            click.echo(f"{click.style(f'{name} {key}'.ljust(26), bold=True)} {text}")
