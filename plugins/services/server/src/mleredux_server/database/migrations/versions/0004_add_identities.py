"""Add identities at OpenID providers."""

from mleredux_server.database.described import create_tables, drop_tables

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Upgrade to this revision."""
    create_tables(__file__)


def downgrade() -> None:
    """Downgrade to the previous revision."""
    drop_tables(__file__)
