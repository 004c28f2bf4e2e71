"""Add the columns shown in lists of runs, and indexes for filtering and sorting."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ORDERS = ("percentile", "cost_usd", "seconds")
_FACETS = ("status", "task", "agent", "seed", "medal", "verdict", "cause", "experiment_id", "arm")


def upgrade() -> None:
    """Upgrade to this revision; the server reads the values of earlier runs from their directories."""
    with op.batch_alter_table("runs", schema=None) as batch_op:
        for name in _ORDERS:
            batch_op.add_column(sa.Column(name, sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("curve", sa.JSON(), nullable=True))
        for name in _ORDERS:
            batch_op.create_index(f"ix_runs_{name}", [name, "id"], unique=False)
        batch_op.create_index("ix_runs_facets", ["project_id", *_FACETS], unique=False)
        batch_op.create_index("ix_runs_changes", ["project_id", "updated_at", "log_bytes"], unique=False)
    op.execute("UPDATE runs SET log_bytes = -1")


def downgrade() -> None:
    """Downgrade to the previous revision."""
    for name in (*_ORDERS, "facets", "changes"):  # not in a batch, which replaces the table and so deletes labels
        op.drop_index(f"ix_runs_{name}", table_name="runs")
    for name in (*_ORDERS, "curve"):
        op.drop_column("runs", name)
