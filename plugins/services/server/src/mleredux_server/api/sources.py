"""`/v1/sources`: uploaded folders of agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller, Reader, Runner
from mleredux_server.database.tables import Source
from mleredux_server.files.uploads import form, received
from mleredux_server.protocol.problems import existing, not_found
from mleredux_server.runs.lists import of_project
from mleredux_server.runs.sources import delete_source, store_source
from mleredux_server.runs.uploaded import sources_dir
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.sources import SourceView
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/sources", tags=["builds"])

Project = Annotated[str | None, Query(max_length=512, description="Id or name.")]
_FORM = form("A gzip-compressed tar.", name="Name of the upload.")


@router.post(
    "",
    status_code=201,
    openapi_extra=_FORM,
    responses={413: {"description": "The archive is too large."}},
)
async def upload_source(caller: Runner, request: Request, service: Current, response: Response) -> SourceView:
    """Upload an agent's folder; identical content is stored once. Runs refer to it as their `agent`."""
    async with received(request, service, caller, service.settings.max_agent_mb << 20) as upload:
        view = _view(await run_in_threadpool(store_source, service, caller, upload))
    response.headers["Location"] = f"/v1/sources/{view.id}"
    return view


@router.get("")
def list_sources(caller: Reader, service: Current, paging: Pages, project: Project = None) -> Page[SourceView]:
    """List uploaded agents visible to the caller, newest first."""
    with service.database.reading() as session:
        query = select(Source).where(*of_project(session, caller, Source.project_id, project))
        sources = session.scalars(query.order_by(Source.created_at.desc(), Source.id)).all()
    return paging.page_by_number(sources, _view)


@router.get("/{source_id}")
def get_source(source_id: str, caller: Reader, service: Current, project: Project = None) -> SourceView:
    """Get an uploaded agent by its hash, to find out whether it needs to be uploaded."""
    with service.database.reading() as session:
        source = _visible(session, caller, source_id, project)
    if not (sources_dir(service.settings) / source.id).is_dir():
        raise not_found("uploaded agent", source_id)  # uploading it again restores it
    return _view(source)


@router.delete("/{source_id}", status_code=204)
def remove_source(source_id: str, caller: Runner, service: Current, project: Project = None) -> None:
    """Delete an uploaded agent; 409 while a run that has not ended uses it."""
    with service.database.reading() as session:
        source = _visible(session, caller, source_id, project)
    delete_source(service, caller, source)


def _visible(session: Session, caller: Caller, source_id: str, project: str | None) -> Source:
    query = select(Source).where(Source.id == source_id, *of_project(session, caller, Source.project_id, project))
    return existing(session.scalars(query).first(), "uploaded agent", source_id)


def _view(row: Source) -> SourceView:
    return as_view(SourceView, row, agent=f"upload:{row.name}@{row.id}")
