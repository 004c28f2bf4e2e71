"""Add the verdict on results."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Upgrade to this revision."""
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("verdict", sa.String(length=16), nullable=True))
        batch_op.create_index("ix_runs_verdict_created_at", ["verdict", "created_at", "id"], unique=False)


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_index("ix_runs_verdict_created_at", table_name="runs")
    op.drop_column("runs", "verdict")
