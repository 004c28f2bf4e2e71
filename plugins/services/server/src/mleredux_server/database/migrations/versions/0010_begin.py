"""The revision of mleredux 0.3.0, at which migrations begin.

A new database is created from `mleredux_server.database.tables`; later migrations change existing ones. Nothing leads
to this revision.
"""

revision = "0010"
down_revision = None
