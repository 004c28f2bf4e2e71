"""Open the database and run its migrations."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from sqlalchemy import create_engine, event, inspect
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from mleredux_server.database.tables import Base

_MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = tuple(sorted(path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*.py")))
"""Known revisions, newest last; the name of a migration's file begins with its revision."""
BUSY_SECONDS = 5.0
"""How long a writer waits for another, in seconds, before the request gets a 503."""
_POOL: dict[str, Any] = {
    "pool_size": 10,
    "max_overflow": 30,
    "pool_timeout": BUSY_SECONDS,
    "hide_parameters": True,  # errors are logged and must not contain values
}
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 20_000, "keepalives_idle": 5, "keepalives_interval": 5}
"""How long PostgreSQL may be out of reach, in seconds and milliseconds, until the connection ends."""
_MOST_IDS = 500
_MIGRATING = threading.Lock()
"""Alembic's context is global to the process."""
_MIGRATION_LOCK = 0x6D6C6572


class Database:
    """The database of a service.

    Args:
        url: SQLAlchemy URL, with a driver.

    Raises:
        MlereduxError: There is no such database, or it can't be reached.
    """

    def __init__(self, url: str | URL) -> None:
        try:
            self.url = make_url(url)
            self.engine = self._open()
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            hint = "Use sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME with `mleredux-server[postgresql]`."
            raise MlereduxError(f"The database's URL can't be used ({type(error).__name__}).", hint=hint) from error
        self._one_writes = threading.Lock()
        self._readers: sessionmaker[Session] = sessionmaker(self.engine, expire_on_commit=False)
        writer = self.engine.execution_options(writes=True)
        self._writers: sessionmaker[Session] = sessionmaker(writer, expire_on_commit=False)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only session."""
        with self._readers() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session that is committed as one transaction at the end; SQLite writers are serialized.

        Raises:
            OperationalError: Another writer did not finish in time.
        """
        with self._turn(), self._writers.begin() as session:
            yield session

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Serialize SQLite writers in this process, since SQLite's own locking is unfair and starves some of them."""
        if self.engine.dialect.name != "sqlite":
            yield
            return
        if not self._one_writes.acquire(timeout=BUSY_SECONDS):
            late = sqlite3.OperationalError("another writer did not finish in time")
            raise OperationalError("BEGIN IMMEDIATE", None, late)
        try:
            yield
        finally:
            self._one_writes.release()

    @property
    def shown(self) -> str:
        """Return the URL without its password."""
        return self.url.render_as_string(hide_password=True)

    def revision(self) -> str | None:
        """Return the revision of the tables; None if there are none."""
        with self.engine.connect() as connection:
            return _revision_of(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open a connection that sees a consistent snapshot while others write."""
        level = {} if self.engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with self.engine.connect().execution_options(**level) as connection:
            yield connection

    def migrate(self, revision: str = REVISIONS[-1], *, down: bool = False) -> None:
        """Run migrations; an empty database gets the newest tables.

        Args:
            revision: The target revision.
            down: Whether it is a downgrade.

        Raises:
            MlereduxError: The database can't be reached, or was created by a version that is newer or older than 0.3.0.
        """
        try:
            if self.revision() == revision:
                return
            from alembic import command  # slow to import
            from alembic.config import Config

            config = Config()
            config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
            with _MIGRATING, self.engine.execution_options(writes=True).begin() as connection:
                if self.engine.dialect.name == "postgresql":  # serialized across processes
                    lock = f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = 0; {lock}")
                before = _revision_of(connection)
                config.attributes["connection"] = connection
                if before is None:
                    Base.metadata.create_all(connection)
                    command.stamp(config, "head")
                else:
                    check_revision(before, f"The database {self.shown}")
                    (command.downgrade if down else command.upgrade)(config, revision)
        except (SQLAlchemyError, OSError) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0].rstrip(".")
            hint = "Check that it is running, that the URL is correct, and that its user and database exist."
            raise MlereduxError(f"The database {self.shown} can't be used: {reason}.", hint=hint) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _open(self) -> Engine:
        if self.url.get_backend_name() != "sqlite":
            engine = create_engine(self.url, pool_pre_ping=True, connect_args=_PATIENCE, **_POOL)
            event.listen(engine, "connect", _configure_postgresql)
            return engine
        if self.url.database:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(self.url, connect_args={"timeout": BUSY_SECONDS}, **_POOL)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin)
        return engine


def batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ids into batches for statements: the number of parameters is limited, and long statements block other
    writers."""
    for start in range(0, len(ids), _MOST_IDS):
        yield ids[start : start + _MOST_IDS]


def check_revision(revision: str, what: str) -> None:
    """Refuse a revision that no migration leads from.

    Args:
        revision: Revision of a database or a backup.
        what: Its name, for the message.

    Raises:
        MlereduxError: It was created by a version that is newer, or older than 0.3.0.
    """
    if revision < REVISIONS[0]:
        raise MlereduxError(f"{what} was created by a version before 0.3.0.", hint="Upgrade to 0.3.0 first.")
    if revision not in REVISIONS:
        raise MlereduxError(f"{what} was created by a newer version.", hint="Upgrade mleredux-server.")


def _revision_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return revision


def _begin(connection: Connection) -> None:
    """Take the write lock on begin: a transaction that starts by reading could not continue after another one wrote."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure_postgresql(connection: Any, _record: Any) -> None:
    connection.execute(f"SET lock_timeout = '{BUSY_SECONDS:.0f}s'")
    connection.commit()


def _configure_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # we begin transactions, not the driver, so that they include DDL
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
