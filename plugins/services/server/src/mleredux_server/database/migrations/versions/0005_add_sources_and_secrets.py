"""Add uploaded agents and secrets."""

import sqlalchemy as sa
from alembic import op
from mleredux_server.database.types import UtcTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "sources",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sources_project_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sources_user_id")),
        sa.PrimaryKeyConstraint("id", "project_id", name=op.f("pk_sources")),
    )
    op.create_index(op.f("ix_sources_project_id"), "sources", ["project_id"])
    op.create_table(
        "secrets",
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_secrets_user_id")),
        sa.PrimaryKeyConstraint("owner", "name", name=op.f("pk_secrets")),
    )


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_table("secrets")
    op.drop_table("sources")
