"""Helpers shared by the commands of `mleredux server`: opening the database, finding and printing records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import json_option, print_json, runs_dir_option

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from mleredux_server.database import Database
    from mleredux_server.database.tables import Project, User
    from mleredux_server.service import Service
    from mleredux_server.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])


def placed(command: _Command) -> _Command:
    """Add the options shared by all commands: the database, and the output format."""
    database = click.option(
        "--database",
        metavar="URL",
        envvar="MLEREDUX_DATABASE",
        help="Database URL as given to `serve`.  [default: SQLite in the runs directory]",
    )
    placed_command: _Command = runs_dir_option(database(json_option(command)))
    return placed_command


def settings_of(runs_dir: str | None, **fields: Any) -> Settings:
    """Return the service's settings for a runs directory; None means the default one."""
    from mleredux.plugin.artifact import default_runs_dir

    from mleredux_server.settings import Settings

    return Settings(runs_dir=Path(runs_dir or default_runs_dir()), **fields)


def service_at(runs_dir: str | None, **fields: Any) -> Service:
    """Return the service for a runs directory, for work on its files and database."""
    from mleredux.plugin.command import Catalogue

    from mleredux_server.app import make_service

    return make_service(settings_of(runs_dir, **fields), Catalogue())


@contextmanager
def opened(
    runs_dir: str | None, database: str | None, *, migrate: bool = False, fresh: bool = False
) -> Iterator[Database]:
    """Open the database; errors become messages.

    Raises:
        MlereduxError: The database does not exist or is not up to date, or the request is refused.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from mleredux_server.database import REVISIONS, Database

    settings = settings_of(runs_dir, database=database)
    hint = "Specify the --runs-dir or --database of `serve`; `mleredux server migrate` creates the tables."
    if database is None and not (migrate or fresh) and not (settings.state_dir / "service.sqlite").is_file():
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
def reading(runs_dir: str | None, database: str | None) -> Iterator[Session]:
    """Open a read-only session; see `opened`."""
    with opened(runs_dir, database) as found, found.reading() as session:
        yield session


@contextmanager
def writing(runs_dir: str | None, database: str | None) -> Iterator[Session]:
    """Open a session that is committed as one transaction; see `opened`."""
    with opened(runs_dir, database) as found, found.writing() as session:
        yield session


def checked(model: Any, **fields: Any) -> Any:
    """Validate a request with the rules of the HTTP API, so that the same names are refused."""
    from mleredux.models import first_problem
    from pydantic import ValidationError

    try:
        return model(**fields)
    except ValidationError as error:
        field, message, _ = first_problem(error)
        raise MlereduxError(f"{field}: {message}.", hint="See `mleredux server --help`.") from error


def user_named(session: Session, name: str) -> User:
    """Return a user by id or name."""
    from mleredux_server.accounts.accounts import find_user

    found = find_user(session, name)
    if found is None:
        raise NotFound(f"User {name!r} not found.", hint="See `mleredux server user list`.")
    return found


def project_named(session: Session, name: str) -> Project:
    """Return a project by id or name."""
    from sqlalchemy import select

    from mleredux_server.database.tables import Project

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


def done(record: dict[str, Any], sentence: str, as_json: bool) -> None:
    """Print a sentence on the result, or JSON."""
    if as_json:
        print_json(record)
    else:
        click.echo(sentence)
