"""The package as a plugin of mleredux, and its database."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from mleredux_server.database import REVISIONS, Database
from mleredux_server.database.tables import Base


def test_the_migrations_create_the_tables_that_the_code_expects(tmp_path: object) -> None:
    database = Database(f"sqlite:///{tmp_path}/service.sqlite")
    database.migrate()
    database.migrate()
    assert database.revision() == REVISIONS[-1]
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    database.close()
