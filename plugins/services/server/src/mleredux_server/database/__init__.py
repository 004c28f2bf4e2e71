"""The service's database: users, requests and the queue. Runs themselves are directories."""

from mleredux_server.database.engine import REVISIONS, Database, batches, check_revision

__all__ = ["REVISIONS", "Database", "batches", "check_revision"]
