"""Without a token: liveness, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.concurrency import run_in_threadpool

from mleredux_server.operations.health import Readiness

router = APIRouter(tags=["about"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Report that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready"}})
async def readyz(request: Request, response: Response) -> Readiness:
    """Report whether runs can be created and executed; 503 if not, with the reasons."""
    readiness: Readiness = await request.app.state.health.ready()
    response.status_code = 200 if readiness.status == "ok" else 503
    response.headers["Cache-Control"] = "no-store"
    return readiness


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus's text"}},
)
async def metrics(request: Request) -> Response:
    """Return the service's metrics for Prometheus."""
    text = await run_in_threadpool(generate_latest, request.app.state.metrics.registry)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
