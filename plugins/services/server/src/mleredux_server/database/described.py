"""Tables that a migration creates, as described in the TOML file beside it.

Each table has its columns with their types, of which `?` marks those that may be null, its `primary_key`, its
`foreign_keys` (those in `cascading` are deleted with what they refer to), its `unique` columns and its `indexes`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op


def create_tables(migration: str) -> None:
    """Create all tables that belong to a migration, given as the path of its module."""
    for table, parts in _tables(migration).items():
        cascading = parts.get("cascading", ())
        op.create_table(
            table,
            *(sa.Column(name, _type(kind), nullable=kind.endswith("?")) for name, kind in parts["columns"].items()),
            *(
                sa.ForeignKeyConstraint(
                    [name], [target], op.f(f"fk_{table}_{name}"), ondelete="CASCADE" if name in cascading else None
                )
                for name, target in parts.get("foreign_keys", {}).items()
            ),
            sa.PrimaryKeyConstraint(*parts["primary_key"], name=op.f(f"pk_{table}")),
            *(sa.UniqueConstraint(name, name=op.f(f"uq_{table}_{name}")) for name in parts.get("unique", ())),
        )
        for index, columns in parts.get("indexes", {}).items():
            op.create_index(op.f(index), table, columns)


def drop_tables(migration: str) -> None:
    """Drop all tables that belong to a migration; the indexes go with their tables."""
    for table in reversed(_tables(migration)):
        op.drop_table(table)


def _tables(migration: str) -> dict[str, Any]:
    return tomllib.loads(Path(migration).with_suffix(".toml").read_text(encoding="utf-8"))


def _type(kind: str) -> sa.types.TypeEngine[Any]:
    """Return a column's type; our own types are kept out of migrations, as they may change later."""
    name, _, length = kind.rstrip("?)").partition("(")
    if name == "DateTime":
        return sa.DateTime(timezone=True)
    found: type[sa.types.TypeEngine[Any]] = getattr(sa, name)
    return sa.String(int(length)) if length else found()
