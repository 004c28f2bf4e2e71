"""Binding of a database to one runs directory: two servers on one database would end each other's runs."""

from __future__ import annotations

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically
from sqlalchemy import select

from mleredux_server.accounts.identity import new_id
from mleredux_server.database.tables import Installation
from mleredux_server.service import Service

FILE = "installation"
"""File in the state folder, so that a runs directory can be moved."""


def bind(service: Service) -> None:
    """Bind the database and the runs directory to each other, if neither is bound yet.

    If the database was lost, the new one gets the directory's mark.

    Raises:
        MlereduxError: The database belongs to another runs directory.
    """
    path = service.settings.state_dir / FILE
    here = path.read_text().strip() if path.is_file() else None
    with service.database.writing() as session:
        there = session.scalar(select(Installation.id))
        if there is not None and there != here:
            raise MlereduxError(
                f"The database {service.database.shown} belongs to a runs directory other than {service.store.path}.",
                hint="Use that one with --runs-dir, or another --database.",
            )
        if there is None:
            here = here or new_id("ins")
            write_atomically(path, f"{here}\n")
            session.add(Installation(id=here))
