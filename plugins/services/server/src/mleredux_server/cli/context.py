"""Helpers shared by the commands of `mleredux server`: opening the database, finding and printing records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import Any

import click
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import first_problem
from mleredux.plugin.command import Catalogue, json_option, print_json, runs_dir_option
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import find_user
from mleredux_server.database import REVISIONS, Database
from mleredux_server.database.tables import Project, User
from mleredux_server.operations.address import alone
from mleredux_server.service import Service
from mleredux_server.settings import settings_of


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
        from mleredux_server.app import make_service  # slow to import

        return make_service(settings_of(self.runs_dir, database=self.database, **fields), Catalogue())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep servers from using the runs directory meanwhile.

        Raises:
            MlereduxError: A server is running.
        """
        with alone(settings_of(self.runs_dir)):
            yield

    @contextmanager
    def opened(self, *, migrate: bool = False, fresh: bool = False) -> Iterator[Database]:
        """Open the database; errors become messages.

        Raises:
            MlereduxError: The database does not exist or is not up to date, or the request is refused.
        """
        settings = settings_of(self.runs_dir, database=self.database)
        hint = "Specify the --runs-dir or --database of `serve`; `mleredux server migrate` creates the tables."
        if self.database is None and not (migrate or fresh) and not (settings.state_dir / "service.sqlite").is_file():
            raise MlereduxError(f"There is no service in {settings.runs_dir}.", hint=hint)
        found = Database(settings.database_url)
        try:
            if migrate:
                found.migrate()
            elif not fresh and found.revision() != REVISIONS[-1]:
                raise MlereduxError(f"The tables of {found.shown} are not up to date.", hint=hint)
            yield found
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise MlereduxError(f"The database {found.shown} can't be used: {reason}", hint="Try again.") from error
        finally:
            found.close()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only session; see `opened`."""
        with self.opened() as found, found.reading() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session that is committed as one transaction; see `opened`."""
        with self.opened() as found, found.writing() as session:
            yield session

    def done(self, record: dict[str, Any], sentence: str) -> None:
        """Print a sentence on the result, or JSON."""
        if self.as_json:
            print_json(record)
        else:
            click.echo(sentence)


def placed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options shared by all commands, which are passed as a `Place`."""

    @wraps(command)
    def placed_command(*, runs_dir: str | None, database: str | None, as_json: bool, **given: Any) -> None:
        command(Place(runs_dir, database, as_json), **given)

    shared, own = list(signature(placed_command, follow_wrapped=False).parameters.values())[:-1], signature(command)
    taken = [*list(own.parameters.values())[1:], *shared]
    placed_command.__signature__ = Signature(  # type: ignore[attr-defined]
        [one.replace(kind=one.KEYWORD_ONLY) for one in taken]
    )
    database = click.option(
        "--database",
        metavar="URL",
        envvar="MLEREDUX_DATABASE",
        help="Database URL as given to `serve`.  [default: SQLite in the runs directory]",
    )
    options: Callable[..., None] = runs_dir_option(database(json_option(placed_command)))
    return options


def checked(model: Any, **fields: Any) -> Any:
    """Validate a request with the rules of the HTTP API, so that the same names are refused."""
    try:
        return model(**fields)
    except ValidationError as error:
        field, message, _ = first_problem(error)
        raise MlereduxError(f"{field}: {message}.", hint="See `mleredux server --help`.") from error


def user_named(session: Session, name: str) -> User:
    """Return a user by id or name."""
    found = find_user(session, name)
    if found is None:
        raise NotFound(f"User {name!r} not found.", hint="See `mleredux server user list`.")
    return found


def project_named(session: Session, name: str) -> Project:
    """Return a project by id or name."""
    found = session.scalar(select(Project).where((Project.name == name) | (Project.id == name)))
    if found is None:
        raise NotFound(f"Project {name!r} not found.", hint="See `mleredux server project list`.")
    return found


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
