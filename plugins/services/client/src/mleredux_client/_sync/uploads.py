# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""Agents of this machine on a service."""

from __future__ import annotations

from pathlib import Path

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client.errors import NotFound
from mleredux_client.folders import find_local, packed


def uploaded(http: Http, agent: str | Path, project: str | None) -> str:
    """The reference of an agent; a folder or script of this machine is uploaded, if the service does not have it.

    Raises:
        UsageError: There is no such folder.
        TooLarge: It is too large for the service.
    """
    local = find_local(agent)
    if local is None:
        return str(agent)
    with packed(local) as package:
        try:
            found = http.json(calls.get(f"/v1/sources/{package.digest}", {"project": project}))
        except NotFound:
            form = {"name": local.name, "project": project}
            found = http.json(calls.upload("/v1/sources", package.archive, form))
    return local.reference(str(found["agent"]))
