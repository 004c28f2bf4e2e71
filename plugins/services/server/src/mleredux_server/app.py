"""The application, assembled from its parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from mleredux import __version__
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue, DataStore
from starlette.concurrency import run_in_threadpool

from mleredux_server.accounts.security import Tokens
from mleredux_server.api import (
    agents,
    artifacts,
    audit,
    builds,
    events,
    experiments,
    health,
    logs,
    projects,
    results,
    run_actions,
    runs,
    secrets,
    sources,
    submissions,
    tasks,
    tokens,
    users,
    webhooks,
)
from mleredux_server.database import Database
from mleredux_server.files.manifest import Manifests
from mleredux_server.files.masks import Masks
from mleredux_server.operations.deliverer import Deliverer
from mleredux_server.operations.health import Health
from mleredux_server.operations.metrics import Metrics
from mleredux_server.operations.retention import Retention
from mleredux_server.operations.traces import open_tracing
from mleredux_server.protocol import idempotency, middleware, openapi, problems
from mleredux_server.protocol.request_log import Observing
from mleredux_server.protocol.requests import check_parameters
from mleredux_server.runs.uploaded import use_sources
from mleredux_server.service import Service
from mleredux_server.settings import Settings
from mleredux_server.streams.hub import Hub
from mleredux_server.web import mount

API_VERSION = 1
"""Version of the API under `/v1`; the plugin contract has a separate version."""


def make_service(settings: Settings, catalogue: Catalogue) -> Service:
    """Open the service's resources; migrations run automatically.

    Raises:
        MlereduxError: The database can't be used.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(settings.database_url)
    database.migrate()
    use_sources(settings)
    return Service(
        settings=settings,
        database=database,
        catalogue=catalogue,
        store=RunStore(settings.runs_dir.resolve()),
        data=DataStore(settings.data_dir),
        tracing=open_tracing(),
    )


def create_app(service: Service) -> FastAPI:
    """Create the application of a service."""

    deliverer, retention = Deliverer(service), Retention(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if service.scheduler is not None:
            await run_in_threadpool(service.scheduler.start)
            deliverer.start()
            retention.start()
        yield
        retention.stop()
        if service.scheduler is not None:
            await run_in_threadpool(service.scheduler.stop)
            await run_in_threadpool(deliverer.stop)
        service.database.close()
        if service.tracing is not None:
            await run_in_threadpool(service.tracing.close)

    app = FastAPIOffline(  # users enter tokens into its docs page, so it loads no third-party scripts
        title="mleredux",
        version=__version__,
        summary="Run ML-engineering agents on benchmark tasks and grade their submissions.",
        lifespan=lifespan,
        dependencies=[Depends(check_parameters)],
        docs_url=None,  # `openapi` provides a docs page with a content security policy
        redoc_url=None,
        static_url="/docs/static",
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.state.tokens = Tokens(service.database)
    app.state.health = Health(service)
    app.state.metrics = Metrics(service)
    app.state.masks, app.state.manifests, app.state.hub = Masks(service), Manifests(), Hub()
    problems.install(app)
    openapi.install(app)
    for module in (health, runs, run_actions, artifacts, results):
        app.include_router(module.router)
    app.include_router(users.me)
    for module in (tokens, users, projects, tasks, experiments):
        app.include_router(module.router)
    idempotency.install(app)
    for module in (agents, events, logs, submissions, builds, sources, secrets, audit, webhooks):
        app.include_router(module.router)

    @app.get("/v1", tags=["about"])
    def about() -> dict[str, Any]:
        """Get the name and version of the service."""
        return {"name": "mleredux", "version": __version__, "api": API_VERSION}

    mount.install(app, service)
    middleware.install(app, service)
    app.add_middleware(Observing, metrics=app.state.metrics)  # the middleware that is added last is the outermost
    if service.tracing is not None:
        app.add_middleware(service.tracing.traced)
    return app
