"""Column types that mean the same in SQLite and in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """Times with a zone, kept as UTC; SQLite keeps none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC, without its zone where the database can't keep one."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A time without a zone can't be kept.")
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """As UTC."""
        if value is None:
            return None
        found: datetime = value
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


class Words(TypeDecorator[str]):
    """What a program said, of which a database may be unable to keep all: that becomes `U+FFFD`.

    PostgreSQL keeps no NUL, and no database half of a surrogate pair; both are in logs that messages quote.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Without what can't be kept."""
        if value is None:
            return None
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
