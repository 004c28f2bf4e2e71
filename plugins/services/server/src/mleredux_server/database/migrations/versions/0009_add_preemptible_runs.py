"""Add preemptible runs."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Upgrade to this revision."""
    for name in ("jobs", "runs"):
        op.add_column(name, sa.Column("preemptible", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Downgrade to the previous revision."""
    for name in ("runs", "jobs"):
        op.drop_column(name, "preemptible")
