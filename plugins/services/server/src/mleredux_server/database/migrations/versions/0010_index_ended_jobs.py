"""Index jobs by their end time, since past resource use is computed from recently ended jobs."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_index("ix_jobs_ended_at", "jobs", ["ended_at", "id"])


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_index("ix_jobs_ended_at", "jobs")
