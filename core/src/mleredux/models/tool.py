"""Tools that agents are given: MCP servers, and skills."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from mleredux.models.base import ID_PATTERN, Model

ToolKind = Literal["mcp", "skill"]
"""An MCP server, or a skill: a folder with SKILL.md."""


class Tool(Model):
    """An MCP server, by its command or its address, or a skill, a folder with the file SKILL.md."""

    id: str = Field(pattern=ID_PATTERN)
    """The name that `--tool` takes."""
    version: str = "1"
    """The version of the tool."""
    title: str
    """A short description for lists."""
    command: tuple[str, ...] = ()
    """Of an MCP server that speaks on its standard streams: the agent starts it in its own sandbox, with its network.
    `{folder}` stands for the server's files there."""
    env: dict[str, str] = {}
    """Variables of that command. They are stored with the run: a key belongs into a variable of the caller, passed by
    `--pass-env`."""
    url: str | None = Field(default=None, pattern=r"^https?://[^/\s@]+(/\S*)?$")
    """Of an MCP server over HTTP; its host must be granted."""
    headers: dict[str, str] = {}
    """Of requests to it; stored with the run, too."""
    folder: Path | None = None
    """Files that are given to the agent, read-only."""

    @property
    def kind(self) -> ToolKind:
        """What it is."""
        return "mcp" if self.command or self.url else "skill"

    @model_validator(mode="after")
    def _is_one(self) -> Tool:
        if self.command and self.url:
            raise ValueError("an MCP server has either a command or a URL")
        if self.kind == "skill" and self.folder is None:
            raise ValueError("give the command or the URL of an MCP server, or the folder of a skill")
        return self
