"""Add the arm of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Upgrade to this revision."""
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("arm", sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_column("runs", "arm")
