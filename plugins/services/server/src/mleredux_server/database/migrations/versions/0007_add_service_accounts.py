"""Add service accounts, and notes and pins of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("users", sa.Column("service", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("runs", sa.Column("notes", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("pinned", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_column("runs", "pinned")
    op.drop_column("runs", "notes")
    op.drop_column("users", "service")
