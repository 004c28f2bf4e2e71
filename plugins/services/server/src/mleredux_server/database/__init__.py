"""The service's database: who there is, what was asked, what waits. Runs themselves are directories."""

from mleredux_server.database.engine import Database

__all__ = ["Database"]
