"""The manifest of an agent, `mleredux-agent.toml`, and its validation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.models import units
from mleredux.models.base import plain_message
from mleredux.plugin.agent import HostName, Network
from mleredux.plugin.task import ID_PATTERN
from mleredux.plugin.tool import ToolKind
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

MANIFEST = "mleredux-agent.toml"
MAX_BYTES = 256 << 10
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def _duration(value: Any) -> Any:
    return units.seconds(value, zero=True) if isinstance(value, str) else value


def _megabytes(value: Any) -> Any:
    return units.megabytes(value) if isinstance(value, str) else value


def _variable(name: str) -> str:
    if not _VARIABLE.match(name):
        raise ValueError(f"{name!r} is not a valid variable name")
    if name.startswith("MLEREDUX_"):
        raise ValueError(f"{name} is set by mleredux")
    return name


def _host(name: str) -> str:
    bare = name.rpartition(":")[0] or name
    if "=" in name or "[" in name or bare.replace(".", "").isdecimal() or bare.lower() == "localhost":
        raise ValueError(f"{name!r} is an address; request hosts by name")
    return name


def _inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} must be inside the manifest's folder")
    return path


Seconds = Annotated[float, BeforeValidator(_duration)]
Megabytes = Annotated[int, BeforeValidator(_megabytes)]
Variable = Annotated[str, AfterValidator(_variable)]
AskedHost = Annotated[HostName, AfterValidator(_host)]
Inside = Annotated[str, AfterValidator(_inside)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AgentTable(_Table):
    """`[agent]`: its identity and command."""

    id: str = Field(pattern=ID_PATTERN)
    version: str = "1"
    title: str = ""
    command: list[str] = Field(min_length=1)
    """Run with the output folder as working directory; files of the repository are in `/opt/agent`."""
    network: Network = "none"
    tools: list[ToolKind] = []
    """Kinds of tools that it supports: `mcp` (the file `$MLEREDUX_MCP_FILE`), `skill` (`$MLEREDUX_SKILLS_DIR`)."""


class BuildTable(_Table):
    """`[build]`: `dockerfile` or `python`; without it, nothing is installed."""

    dockerfile: Inside | None = None
    """A Dockerfile, which can use `ARG BASE_IMAGE`; its context is the folder of the manifest."""
    python: list[str] = []
    """Arguments of `pip install`: `.` for the folder itself as a package, `-r requirements.txt`, `name==version`."""
    time_limit: Seconds = Field(default=1800, gt=0, le=7200)
    max_image: Megabytes = Field(default=10240, gt=0)
    writable_root: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> BuildTable:
        if self.dockerfile is not None and self.python:
            raise ValueError("set only one of `dockerfile` and `python`")
        for item in self.python:
            words = item.split()
            if words[:1] == ["-r"] and len(words) == 2:
                _inside(words[1])
            elif not words or item.startswith("-"):
                raise ValueError(f"{item!r} is not a requirement; `-r FILE` is the only pip option that is supported")
        return self


class EnvironmentTable(_Table):
    """`[environment]`: variables of the agent."""

    set: dict[Variable, str] = {}
    passed: list[Variable] = Field(default=[], alias="pass")
    """Requested from the caller's environment and granted by the user; masked in all stored files."""
    secrets: list[Variable] = []
    """Like `pass`."""


class NetworkTable(_Table):
    """`[network]`: requested hosts, `NAME`, `NAME:PORT` or `*.DOMAIN`; the user grants them."""

    build: list[AskedHost] = []
    """Hosts to reach during the build, in addition to package registries."""
    run: list[AskedHost] = []
    """Hosts to reach during the run, in addition to those that `network` of `[agent]` allows."""


class LimitsTable(_Table):
    """`[limits]`: defaults, which the user may change."""

    time_limit: Seconds | None = Field(default=None, gt=0)
    cpus: float | None = Field(default=None, gt=0, strict=False)
    memory: Megabytes | None = Field(default=None, ge=64)
    disk: Megabytes | None = Field(default=None, ge=1)
    processes: int | None = Field(default=None, ge=1)
    gpus: int | None = Field(default=None, ge=0)
    llm_calls: int | None = Field(default=None, ge=0)
    llm_tokens: int | None = Field(default=None, ge=0)
    llm_cost_usd: float | None = Field(default=None, ge=0, strict=False)


class LogsTable(_Table):
    """`[logs]`: the location of its native logs, and their format."""

    path: Inside
    """The path relative to the output folder."""
    format: str
    """`atif`, or the id of an installed agent with a reader for them."""


class SmokeTable(_Table):
    """`[smoke]`: the short run that it must pass."""

    task: str = "wine"
    time_limit: Seconds = Field(default=300, gt=0, le=3600)
    options: dict[str, Any] = {}


class VerifyTable(_Table):
    """`[verify]`: how to reproduce its result without training."""

    command: list[str] = []
    """The command, run in `output/code` with the content of the output folder; if empty, the code there is run."""


class Manifest(_Table):
    """The whole manifest."""

    agent: AgentTable
    build: BuildTable = BuildTable()
    environment: EnvironmentTable = EnvironmentTable()
    network: NetworkTable = NetworkTable()
    limits: LimitsTable = LimitsTable()
    options: dict[str, Any] = {}
    presets: dict[str, dict[str, Any]] = {}
    """`[presets.NAME]`: values of options, selected with `-O preset=NAME`."""
    logs: LogsTable | None = None
    smoke: SmokeTable = SmokeTable()
    verify: VerifyTable = VerifyTable()


class BadManifest(MlereduxError):
    """The manifest is missing or invalid; the message names the fields, and how to fix them."""


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in an agent's folder, checked against the files there.

    Raises:
        BadManifest: The manifest is invalid; the message lists all errors.
    """
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise BadManifest(
            f"There is no {MANIFEST} in the agent's folder.",
            hint="Write one (see the README of mleredux-agent-repo), or specify its folder after `#`.",
        )
    if path.stat().st_size > MAX_BYTES:
        raise BadManifest(f"{MANIFEST} is larger than {MAX_BYTES >> 10} KB.", hint="Shorten it.")
    with file_errors(BadManifest, f"{MANIFEST} is not valid TOML", "Fix it there.", ValueError):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        wrong = "\n".join(f"  {_where(item['loc'])}: {_what(item)}" for item in error.errors())
        raise BadManifest(f"{MANIFEST} is not valid:\n{wrong}", hint="\nFix these fields.") from None
    missing = [name for name in _needed(manifest) if not (folder / name).exists()]
    if missing:
        raise BadManifest(f"{MANIFEST} names {', '.join(missing)}, which is missing.", hint="Add it, or fix the name.")
    return manifest


def _needed(manifest: Manifest) -> list[str]:
    build = manifest.build
    if build.dockerfile:
        return [build.dockerfile]
    listed = [item.split()[1] for item in build.python if item.startswith("-r ")]
    package = any(item == "." or item.startswith(".[") for item in build.python)
    return [*listed, *(["pyproject.toml"] if package else [])]


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the manifest"


def _what(item: Any) -> str:
    kind = item["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not supported"
    return plain_message(item)
