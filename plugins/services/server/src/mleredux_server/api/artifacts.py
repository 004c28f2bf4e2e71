"""`/v1/runs/{id}/artifacts`: the files of a run."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request, Response
from mleredux.plugin.artifact import Artifact

from mleredux_server.accounts.security import Reader
from mleredux_server.files.archives import MEDIA_TYPES, Format, archive
from mleredux_server.files.manifest import Listing, Manifests, artifact_of, live
from mleredux_server.files.masks import masks_of
from mleredux_server.files.names import disposition
from mleredux_server.files.responses import send_file
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import SeenRun, run_of
from mleredux_server.schemas.pages import Page, Pages, Paging, bad_cursor, make_cursor
from mleredux_server.service import Current
from mleredux_server.streams.answer import Pieces

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["artifacts"])

_LONG_PATH = 1000
BINARY: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file, with its own media type.", "content": {"*/*": {}}},
    206: {"description": "The part requested by `Range`.", "content": {"*/*": {}}},
    304: {"description": "The client's copy is current (`If-None-Match`)."},
    416: {"description": "The range starts after the end of the file."},
}

ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The archive.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES.values()},
    }
}


def manifests_of(request: Request) -> Manifests:
    """Return the manifests of the application that handles a request."""
    return cast("Manifests", request.app.state.manifests)


def listing_of(request: Request, run: SeenRun) -> Listing:
    """List the files of a run: those of its manifest, or the current ones."""
    return manifests_of(request).of(run) or live(run)


@router.get("/artifacts")
def list_artifacts(run_id: str, caller: Reader, request: Request, service: Current, paging: Pages) -> Page[Artifact]:
    """List the files of a run by path: those of its manifest, or the current ones while it is running."""
    run = run_of(service, caller, run_id)
    artifacts = list(listing_of(request, run).artifacts.values())
    begin = _begin(artifacts, paging)
    shown = artifacts[begin : begin + paging.limit]
    if begin + len(shown) >= len(artifacts):
        return Page[Artifact](items=shown)
    last = shown[-1].path
    place = last if len(last) <= _LONG_PATH else begin + len(shown)
    return Page[Artifact](items=shown, next=paging.linked(make_cursor(place)))


def _begin(artifacts: list[Artifact], paging: Paging) -> int:
    """Return the index at which a page begins: after the cursor's path or, for long paths, at the index that it
    contains."""
    place = paging.place(object)
    match place:
        case None:
            return 0
        case [str() as path]:
            return bisect_right(artifacts, path, key=lambda artifact: artifact.path)
        case [int() as number] if number >= 0:
            return number
    raise bad_cursor()


@router.get("/artifacts/{path:path}", response_class=Response, responses=BINARY)
@router.head("/artifacts/{path:path}", response_class=Response, responses=BINARY, include_in_schema=False)
def get_artifact(run_id: str, path: str, caller: Reader, request: Request, service: Current) -> Response:
    """Get one file, or the part that `Range` requests. Active content is sent as a plain-text download."""
    run = run_of(service, caller, run_id)
    artifact, file = artifact_of(run, manifests_of(request), path, masks_of(request).cover(run))
    same = artifact.sha256 is not None and artifact.size == file.size and file.mask in (None, run.hidden)
    return send_file(
        request,
        file,
        path=artifact.path,
        media_type=artifact.media_type,
        sha256=artifact.sha256 if same else None,
        ours=artifact.producer != "agent" and "/" not in artifact.path,
    )


@router.get("/archive", response_class=Response, responses=ARCHIVE)
def get_archive(
    run_id: str,
    caller: Reader,
    request: Request,
    service: Current,
    format: Annotated[Format, Query(description="Archive format.")] = "zip",
    prefix: Annotated[str, Query(max_length=4096, description="Only files whose paths begin with this.")] = "",
) -> Response:
    """Get all files in one archive, which is created while it is sent. Unsafe characters in names are written as
    `%XX`."""
    run = run_of(service, caller, run_id)
    wanted = [path for path in listing_of(request, run).artifacts if path.startswith(prefix)]
    if prefix and not wanted:
        hint = "See the list of artifacts."
        raise Problem("not-found", f"No artifact of run {run.id} begins with {prefix[:200]!r}.", hint=hint)
    headers = {
        "Content-Disposition": disposition(f"{run.id}.{format}", inline=False),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Accept-Ranges": "none",
    }
    pieces = archive(run, wanted, format, masks_of(request).cover(run))
    return Pieces(pieces, headers=headers, media_type=MEDIA_TYPES[format])
