"""Create all tables."""

from mleredux_server.database.described import create_tables, drop_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Upgrade to this revision."""
    create_tables(__file__)


def downgrade() -> None:
    """Downgrade from this revision; the indexes go with their tables."""
    drop_tables(__file__)
