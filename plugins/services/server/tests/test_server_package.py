"""The package as a plugin of mleredux, and its database."""

from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from mleredux_server.database import REVISIONS, Database
from mleredux_server.database.tables import Base
from mleredux_server.settings import Settings
from mleredux_testing.names import ODD_NAME


def test_the_migrations_create_the_tables_that_the_code_expects(tmp_path: Path) -> None:
    settings = Settings(runs_dir=tmp_path / ODD_NAME)
    database = Database(settings.database_url)
    database.migrate()
    database.migrate()
    assert database.revision() == REVISIONS[-1]
    database.migrate(REVISIONS[0], down=True)
    database.migrate()
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    database.close()
    assert list(tmp_path.iterdir()) == [settings.runs_dir]
    assert (settings.state_dir / "service.sqlite").stat().st_size
