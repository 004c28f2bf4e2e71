"""Add the seconds for which a run's clock was paused."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Upgrade to this revision; the server reads the values of earlier runs from their directories."""
    op.add_column("runs", sa.Column("paused_seconds", sa.Double(), nullable=True))
    op.execute("UPDATE runs SET log_bytes = -1")


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_column("runs", "paused_seconds")
