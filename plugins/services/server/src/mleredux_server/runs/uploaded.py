"""References to uploaded agents, `upload:NAME@HASH[#PART]`, and their folders."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin import Scheme
from mleredux.plugin.agent import Agent
from mleredux.plugin.command import current

from mleredux_server.settings import Settings

UPLOAD = "upload:"
_VARIABLE = "MLEREDUX_UPLOADED_AGENTS"
_REFERENCE = re.compile(r"upload:([a-z0-9][a-z0-9._-]{0,63})@([0-9a-f]{64})(?:#([^\0]{1,256}))?")
_places: list[Path] = []


def use_sources(settings: Settings) -> None:
    """Make this process find uploaded agents in this server's folder."""
    _places[:] = [sources_dir(settings)]
    os.environ[_VARIABLE] = str(_places[0])  # jobs of executors find the agents there


def sources_dir(settings: Settings) -> Path:
    """Return the parent of all uploaded folders, each named by the hash of its content."""
    return (settings.state_dir / "sources").resolve()


def read_reference(reference: str) -> tuple[str, str, str | None]:
    """Return the name, the hash, and the folder or script within the uploaded folder.

    Raises:
        MlereduxError: It is malformed.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise MlereduxError(f"{reference[:200]!r} is not an uploaded agent.", hint="Use `upload:NAME@HASH`.")
    return match[1], match[2], match[3]


def uploaded_agent(reference: str) -> Agent:
    """Return the agent in an uploaded folder, read like that of a repository.

    Raises:
        MlereduxError: The folder is not on this server, or its manifest is not valid.
    """
    name, digest, part = read_reference(reference)
    places = _places or [Path(value) for value in (os.environ.get(_VARIABLE),) if value]
    if not places or not (place := places[0] / digest).is_dir():
        raise NotFound(f"The agent {reference[:200]} was not uploaded to this server.", hint="Upload it again.")
    try:
        agent = current().agent(f"repo:{place}{f'#{part}' if part else ''}")
    except MlereduxError as error:
        hint = error.hint and error.hint.replace(str(place), name)
        raise MlereduxError(error.message.replace(str(place), name), hint=hint) from error
    return agent.model_copy(update={"reference": reference, "unisolated": "named"})


SCHEME = Scheme(id="upload", title="Agents uploaded to this server", find_agent=uploaded_agent)
