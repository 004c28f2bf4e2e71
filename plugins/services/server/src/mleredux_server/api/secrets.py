"""`/v1/secrets`: values that runs get by name, and that no response contains."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from mleredux_http_api import SecretView
from sqlalchemy import select

from mleredux_server.accounts.secrets import delete_secret, owner_of, set_secret
from mleredux_server.accounts.security import Reader, Runner
from mleredux_server.database.tables import Secret
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.sources import SecretRequest
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/secrets", tags=["accounts"])

SecretName = Annotated[str, Path(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Project = Annotated[str | None, Query(max_length=512, description="Id or name; your own secrets by default.")]


@router.get("")
def list_secrets(caller: Reader, service: Current, paging: Pages, project: Project = None) -> Page[SecretView]:
    """List the names of the caller's secrets, or of a project's."""
    with service.database.reading() as session:
        query = select(Secret).where(Secret.owner == owner_of(session, caller, project)).order_by(Secret.name)
        rows = session.scalars(query).all()
    return paging.page_of_all(rows, lambda row: row.name, _view)


@router.put("/{name}")
def put_secret(name: SecretName, body: SecretRequest, caller: Runner, service: Current) -> SecretView:
    """Create or replace a secret. A run gets it if its request names it in `secrets`."""
    return _view(set_secret(service, caller, name, body.value.get_secret_value(), body.project))


@router.delete("/{name}", status_code=204)
def remove_secret(name: SecretName, caller: Runner, service: Current, project: Project = None) -> None:
    """Delete a secret; running agents keep it until they end."""
    delete_secret(service, caller, name, project)


def _view(row: Secret) -> SecretView:
    owner = row.owner if row.owner.startswith("prj_") else None
    return SecretView(name=row.name, project=owner, created_at=row.created_at, updated_at=row.updated_at)
