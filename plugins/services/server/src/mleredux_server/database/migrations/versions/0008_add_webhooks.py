"""Add webhooks."""

from mleredux_server.database.described import create_tables, drop_tables

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Upgrade to this revision."""
    create_tables(__file__)


def downgrade() -> None:
    """Downgrade to the previous revision."""
    drop_tables(__file__)
