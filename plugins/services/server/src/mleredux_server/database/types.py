"""Column types with the same semantics in SQLite and in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """Timezone-aware times, stored as UTC; SQLite stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        """Return `datetime`."""
        return datetime

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC, without the zone if the database can't store it."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A time without a time zone can't be stored.")
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return the stored time as a timezone-aware one in UTC."""
        if value is None:
            return None
        time: datetime = value
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text printed by programs; characters that a database can't store become `U+FFFD`.

    PostgreSQL stores no NUL, and no database stores unpaired surrogates; both occur in logs that messages quote.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace characters that can't be stored."""
        if value is None:
            return None
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
