"""Alembic's environment: migrations run on the connection that is passed to it."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from mleredux_server.database.tables import Base
from mleredux_server.database.types import UtcTime


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Keep our types out of migrations, as they may change later."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcTime) else False


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    render_item=_render,
)
with context.begin_transaction():
    context.run_migrations()
