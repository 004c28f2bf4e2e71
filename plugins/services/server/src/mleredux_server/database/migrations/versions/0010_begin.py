"""The revision of mleredux 0.3.0, at which migrations begin.

A new database is created from `mleredux_server.database.tables`; later migrations change existing ones.
"""

revision = "0010"
down_revision = None


def upgrade() -> None:
    """Change nothing: no database is of an earlier revision."""


def downgrade() -> None:
    """Change nothing: no revision is earlier."""
