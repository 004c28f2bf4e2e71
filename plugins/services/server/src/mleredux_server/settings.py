"""The settings of a service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mleredux.plugin.agent import Grants
from mleredux.plugin.command import granted
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


class Settings(BaseModel):
    """The settings of a service; `mleredux serve --help` describes each."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    runs_dir: Path
    data_dir: Path | None = None
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port; 0 chooses a free one."""
    database: str | None = None
    """postgresql://USER:PASSWORD@HOST/NAME; MLEREDUX_DATABASE is safer.  [default: SQLite in the runs directory]"""
    workers: int = Field(default=0, ge=0)
    """Maximum number of concurrent runs.  [default: one per CPU; with --executor, one per CPU of its nodes and at least
    256, including waiting ones]
    """
    executor: str = "local"
    """Executor that places the runs on machines, e.g. slurm.  [default: local, processes of this server]"""
    store: str | None = None
    """Object store for the executor's nodes, s3://BUCKET/PREFIX.  [default: they share the file system]"""
    base_image: str | None = None
    """Base image to build images from."""
    log_format: Literal["text", "json"] = "text"
    """Format of the server's log."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum level to log."""
    requests_per_minute: int = Field(default=1200, ge=1)
    """Rate limit per user; further requests get 429."""
    max_upload_mb: int = Field(default=2048, ge=1)
    """Maximum size of a submitted file."""
    max_agent_mb: int = Field(default=100, ge=1)
    """Maximum size of an uploaded agent."""
    min_free_mb: int = Field(default=512, ge=0)
    """Free disk space below which the server reports that it is not ready."""
    lease: float = Field(default=30.0, ge=3)
    """Time after which a worker that stopped renewing its lease is killed and replaced.  [default: 30s]"""
    stall_limit: float = Field(default=900.0, ge=3)
    """Time without any CPU use after which a worker is killed and replaced, except for builds.  [default: 15m]"""
    stage_limit: float = Field(default=12 * 3600.0, ge=10)
    """Time limit of each stage of a run; the agent has its own.  [default: 12h]"""
    verify: bool = True
    """Execute the final code of runs again to verify their results, unless a request says otherwise."""
    repo_hosts: tuple[str, ...] = ()
    """Fetch users' agent repositories from these hosts only.  [default: any public host]"""
    agent_images: tuple[str, ...] = ()
    """Images that users may name."""
    agent_variables: tuple[str, ...] = ()
    """Environment variables of the server that users' agents may use."""
    agent_hosts: tuple[str, ...] = ()
    """Hosts that users' agents may reach while they run (or in builds)."""
    agent_llm_fields: tuple[str, ...] = ()
    """Fields of requests to language models that users may grant to agents; a pattern is allowed."""
    agent_llm_models: tuple[str, ...] = ()
    """Language models that users may grant to agents besides those that the gateway offers; a pattern is allowed."""
    agent_tools: tuple[str, ...] = ()
    """MCP servers and skills of installed plugins that users may give to agents; a pattern is allowed."""
    webhook_hosts: tuple[str, ...] = ()
    """A private host to which webhooks may be sent."""
    retain: tuple[str, ...] = ()
    """Delete runs this long after their end, e.g. 90d, team=30d, lab=forever.  [default: keep them]"""
    half_life: float = Field(default=86400.0, ge=0)
    """Time after which a user's past use counts half in the fair share.  [default: 1d]"""
    oidc_issuer: str | None = None
    """OpenID provider through which users may sign in to the web pages."""
    oidc_client: str | None = None
    """Client id at the provider; the secret is read from MLEREDUX_OIDC_SECRET."""
    oidc_scope: str = "openid profile email"
    """Scopes to request.  [default: openid profile email]"""
    oidc_allow: tuple[str, ...] = ()
    """Who may sign in, e.g. 'groups=ml-*' or 'email=*@example.org' (verified addresses); '*' for everyone."""
    max_body_kb: int = Field(default=1024, ge=16)
    """Maximum body size of requests other than uploads."""
    oidc_secret: str | None = Field(default=None, repr=False)

    @property
    def agent_grants(self) -> Grants:
        """Return the grants that agents of users may get.

        Raises:
            MlereduxError: A name is not valid.
        """
        return granted(
            *(self.agent_variables, self.agent_hosts, self.agent_images),
            *(self.agent_llm_fields, self.agent_llm_models, self.agent_tools),
        )

    @property
    def state_dir(self) -> Path:
        """The folder for everything that the service stores besides the runs."""
        return self.runs_dir / ".server"

    @property
    def database_url(self) -> str | URL:
        """The URL of the database, with its driver."""
        if not self.database:
            from sqlalchemy.engine import URL  # takes 0.3 s, and the server binds its address before

            return URL.create("sqlite", database=str((self.state_dir / "service.sqlite").resolve()))
        return re.sub("^postgres(?:ql)?://", "postgresql+psycopg://", self.database)


def settings_of(runs_dir: str | None, **fields: Any) -> Settings:
    """Return the service's settings for a runs directory; None means the default one."""
    from mleredux.plugin.artifact import default_runs_dir

    return Settings(runs_dir=Path(runs_dir or default_runs_dir()), **fields)
