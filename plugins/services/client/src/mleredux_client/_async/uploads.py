"""Upload local agents to a server."""

from __future__ import annotations

from pathlib import Path

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client.errors import NotFound
from mleredux_client.folders import find_local, packed


async def uploaded(http: AsyncHttp, agent: str | Path, project: str | None) -> str:
    """Return the reference of an agent; a local folder or script is uploaded if the server does not have it.

    Raises:
        UsageError: The folder does not exist.
        TooLarge: The folder is too large for the server.
    """
    local = find_local(agent)
    if local is None:
        return str(agent)
    with packed(local) as package:
        try:
            source = await http.json(calls.get(f"/v1/sources/{package.digest}", {"project": project}))
        except NotFound:
            form = {"name": local.name, "project": project}
            source = await http.json(calls.upload("/v1/sources", package.archive, form))
    return local.reference(str(source["agent"]))
