"""Add the tokens that a run used."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Upgrade to this revision; the server reads the values of earlier runs from their directories."""
    op.add_column("runs", sa.Column("tokens", sa.BigInteger(), nullable=True))
    op.create_index("ix_runs_tokens", "runs", ["tokens", "id"])
    op.execute("UPDATE runs SET log_bytes = -1")


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_index("ix_runs_tokens", "runs")
    op.drop_column("runs", "tokens")
