"""Tools for agents: MCP servers and skills."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from mleredux.models.base import ID_PATTERN, Model

ToolKind = Literal["mcp", "skill"]
"""An MCP server, or a skill: a folder with SKILL.md."""


class Tool(Model):
    """An MCP server, given by its command or its URL, or a skill: a folder with the file SKILL.md."""

    id: str = Field(pattern=ID_PATTERN)
    """The name that `--tool` takes."""
    version: str = "1"
    """The version of the tool."""
    title: str
    """A short description for lists."""
    command: tuple[str, ...] = ()
    """The command of an MCP server that uses standard input and output: the agent starts it in its own sandbox, with
    its own network. `{folder}` stands for the location of the server's files there."""
    env: dict[str, str] = {}
    """Environment variables of the command. They are stored with the run; pass keys from the caller's environment with
    `--pass-env` instead."""
    url: str | None = Field(default=None, pattern=r"^https?://[^/\s@]+(/\S*)?$")
    """The URL of an MCP server over HTTP, whose host must be granted."""
    headers: dict[str, str] = {}
    """Headers of requests to that server; they are stored with the run as well."""
    folder: Path | None = None
    """Files given to the agent, read-only."""

    @property
    def kind(self) -> ToolKind:
        """The kind of the tool."""
        return "mcp" if self.command or self.url else "skill"

    @model_validator(mode="after")
    def _is_one(self) -> Tool:
        if self.command and self.url:
            raise ValueError("an MCP server has either a command or a URL")
        if self.kind == "skill" and self.folder is None:
            raise ValueError("give the command or the URL of an MCP server, or the folder of a skill")
        return self
