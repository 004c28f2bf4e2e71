"""Models of grants: what agents that are not installed request, and what the person who runs them allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

from mleredux.models.base import Model

_HOST = re.compile(
    r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?(=[0-9a-f.:\[\]]+)?(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?",
    re.IGNORECASE,
)


def _name(holds: Callable[[str], object], fault: str) -> AfterValidator:
    """Return a validator for names that satisfy `holds`."""

    def check(name: str) -> str:
        if not holds(name):
            raise ValueError(f"{name[:80]!r} is not {fault}")
        return name

    return AfterValidator(check)


VariableName = Annotated[str, _name(re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch, "a valid variable name")]
HostName = Annotated[
    str, _name(_HOST.fullmatch, "a host: write NAME, NAME:PORT or *.DOMAIN"), AfterValidator(str.lower)
]
"""`NAME`, `NAME:PORT` or `*.DOMAIN`; without a port, ports 80 and 443. `NAME=ADDRESS` or a plain address reaches
exactly that address, even a private one."""
_A_FIELD = "a request field: write its name as in the refusal"
FieldName = Annotated[str, _name(re.compile(r"[\w$:.*?\[\]-]{1,128}").fullmatch, _A_FIELD)]
"""A field of LLM requests, as named in the gateway's error messages, or a pattern: `tools.web_search*`."""

ModelName = Annotated[str, _name(re.compile(r"[\w./:@*?\[\]+-]{1,200}").fullmatch, "the name of a language model")]
"""A language model, or a pattern: `gpt-5*`. Models that search the web are granted only by their exact name."""


ToolName = Annotated[str, _name(lambda name: name.isprintable() and 0 < len(name) <= 4096, "the name of a tool")]
"""The id of a tool, or the path of a skill folder or of a file of MCP servers."""


class Grants(Model):
    """What an agent gets beyond a sandbox without network or, as returned by `Agent.asks`, what an agent requests."""

    variables: tuple[VariableName, ...] = ()
    """Names of variables of the caller's environment; their values are masked in all stored files."""
    hosts: tuple[HostName, ...] = ()
    """Hosts that the agent can reach while it runs."""
    build_hosts: tuple[HostName, ...] = ()
    """Hosts that its build can reach, besides package registries."""
    images: tuple[str, ...] = ()
    """Images that its build may use besides the base image: names, or patterns (`ghcr.io/team/*`)."""
    llm_fields: tuple[FieldName, ...] = ()
    """Additional fields that the gateway allows in requests to language models; a manifest cannot request them."""
    llm_models: tuple[ModelName, ...] = ()
    """Language models in addition to those in the gateway's configuration; a manifest cannot request them."""
    tools: tuple[ToolName, ...] = ()
    """MCP servers and skills: ids from `mleredux list tools` or, on the user's own machine, paths; a manifest cannot
    request them."""
