"""Build an agent's environment ahead of its runs; the reference is fetched and pinned here, not while handling a
request."""

from __future__ import annotations

from typing import Any

from mleredux.errors import BuildFailed
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import is_foreign
from mleredux.plugin.sandbox import BuildRequest, choose

from mleredux_server.database.tables import BuildRow
from mleredux_server.runs.references import check_build, granted
from mleredux_server.work import WorkContext

LOG_FILE = "build.log"
TABLE, BUSY, FAILED = BuildRow, "building", "It could not be built."


def work(context: WorkContext) -> dict[str, Any]:
    """Fetch, pin and build.

    Returns:
        `agent`, the pinned reference; `image`, the content digest of the build; `cached`, whether it already existed.

    Raises:
        MlereduxError: It can't be fetched or built, or is not allowed.
    """
    job_request = context.request
    reference, options = str(job_request["agent"]), dict(job_request["options"])
    # A catalogue caches the first resolution of a branch; a build uses the current one.
    catalogue = Catalogue(block=context.catalogue.block, load=context.catalogue.load)
    if not job_request["trusted"]:
        check_build(catalogue, context.settings, reference, options)
    agent = catalogue.agent(reference, options)
    choose(agent, catalogue.capabilities(), job_request["sandbox"])
    log = context.folder / LOG_FILE
    request = BuildRequest(
        agent,
        log,
        base_image=context.settings.base_image,
        time_limit=agent.build.time_limit,
        hosts=granted(catalogue, context.settings, agent).build_hosts if is_foreign(agent) else None,
    )
    try:
        built = catalogue.sandbox(job_request["sandbox"]).build(request)
    except BuildFailed as error:
        raise BuildFailed(error.message.replace(str(log), "the build's log"), hint=error.hint) from error
    return {"agent": agent.reference or agent.id, "image": built.identity, "cached": built.cached}


def settle(row: BuildRow, result: dict[str, Any]) -> None:
    """Record that the build is ready."""
    row.status, row.agent = "ready", result["agent"]
    row.image, row.cached = result["image"], result["cached"]
