"""Back up the database to one portable file while the server runs, and restore it into SQLite or PostgreSQL."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from mleredux.errors import MlereduxError, file_errors
from sqlalchemy.engine import Connection

from mleredux_server.database import Database, check_revision
from mleredux_server.database.tables import Base
from mleredux_server.database.types import UtcTime

FORMAT = "mleredux-server-backup"
_AT_ONCE = 1000


def backup(database: Database, target: Path) -> dict[str, int]:
    """Write a consistent snapshot of all rows to a file of gzip-compressed JSON lines.

    Returns:
        The number of rows by table.

    Raises:
        OSError: The file can't be written; an existing file is kept.
    """
    counts: dict[str, int] = {}
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.touch(mode=0o600)
    try:
        with database.snapshot() as connection, part.open("wb") as raw, gzip.open(raw, "wt", encoding="utf-8") as file:
            file.write(json.dumps({"format": FORMAT, "revision": database.revision()}) + "\n")
            for table in Base.metadata.sorted_tables:
                counts[table.name] = 0
                for row in connection.execution_options(yield_per=_AT_ONCE).execute(sa.select(table)).mappings():
                    file.write(json.dumps({"table": table.name, "row": dict(row)}, default=_written) + "\n")
                    counts[table.name] += 1
            file.write(json.dumps({"end": counts}) + "\n")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return counts


def restore(database: Database, source: Path) -> dict[str, int]:
    """Fill an empty database from a file written by `backup`, and run later migrations.

    Returns:
        The number of rows by table.

    Raises:
        MlereduxError: The database already has users, or the file is damaged, incomplete, or from a newer version.
    """
    lines = _lines(source)
    revision = next(lines)["revision"]
    check_revision(revision, str(source))
    if database.revision() is not None:
        with database.engine.connect() as connection:
            if connection.scalar(sa.select(sa.func.count()).select_from(sa.table("users"))):
                raise MlereduxError(f"The database {database.shown} is not empty.", hint="Use an empty one.")
    database.migrate()
    database.migrate(revision, down=True)
    counts: dict[str, int] = {}
    with database.writing() as session:
        connection = session.connection()
        for name, rows in _batches(lines, source, counts):
            _insert(connection, name, rows)
        if connection.dialect.name == "postgresql":
            last = "(SELECT coalesce(max(id), 0) + 1 FROM audit)"
            connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('audit', 'id'), {last}, false)"))
    database.migrate()
    return counts


def _insert(connection: Connection, name: str, rows: list[dict[str, Any]]) -> None:
    """Insert rows with their own columns, since the table may be of an earlier revision."""
    known = Base.metadata.tables[name].columns
    columns = [sa.column(key, known[key].type if key in known else None) for key in rows[0]]
    times = [key for key in rows[0] if key in known and isinstance(known[key].type, UtcTime)]
    for row in rows:
        row |= {key: datetime.fromisoformat(row[key]) for key in times if row[key] is not None}
    connection.execute(sa.insert(sa.table(name, *columns)), rows)


def _batches(
    lines: Iterator[dict[str, Any]], source: Path, counts: dict[str, int]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    name, rows = "", list[dict[str, Any]]()
    for line in lines:
        if rows and (line.get("table") != name or len(rows) == _AT_ONCE):
            yield name, rows
            rows = []
        if "end" in line:
            if {key: number for key, number in line["end"].items() if number} != counts:
                break
            return
        name = line["table"]
        counts[name] = counts.get(name, 0) + 1
        rows.append(line["row"])
    raise MlereduxError(f"{source} is incomplete.", hint="Use another backup; nothing was restored.")


def _lines(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a backup; the first one names the format."""
    hint = "Use a file that `mleredux server backup` created; nothing was restored."
    fault = file_errors(
        MlereduxError, f"{source} is not a backup of a server, or can't be read", hint, EOFError, ValueError
    )
    with fault, gzip.open(source, "rt", encoding="utf-8") as file:
        first = json.loads(file.readline())
        if not isinstance(first, dict) or first.get("format") != FORMAT:
            raise ValueError("its first line is another one")
        yield first
        yield from map(json.loads, file)


def _written(value: Any) -> str:
    assert isinstance(value, datetime), type(value)
    return value.isoformat()
