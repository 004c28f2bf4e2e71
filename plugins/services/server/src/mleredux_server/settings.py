"""The settings of a service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mleredux.plugin.agent import Grants
from mleredux.plugin.command import granted
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


class Settings(BaseModel):
    """The settings of a service; `mleredux serve --help` describes each."""

    model_config = ConfigDict(frozen=True)

    runs_dir: Path
    data_dir: Path | None = None
    database: str | None = None
    """SQLAlchemy URL; None: SQLite in the state folder."""
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=0, ge=0)
    """Processes that execute runs; 0: one per CPU."""
    executor: str = "local"
    """What executes runs: `local` is this server's own worker processes."""
    store: str | None = None
    """URL of the object store through which the executor's nodes get runs and data; None: they share a file system."""
    base_image: str | None = None
    max_upload_mb: int = Field(default=2048, ge=1)
    max_agent_mb: int = Field(default=100, ge=1)
    """Maximum size of an uploaded agent, unpacked."""
    max_body_kb: int = Field(default=1024, ge=16)
    """Maximum body size of requests other than uploads."""
    requests_per_minute: int = Field(default=1200, ge=1)
    """Rate limit per user."""
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    repo_hosts: tuple[str, ...] = ()
    """Hosts that repositories may be fetched from for users who are not admins; empty: any public host."""
    agent_images: tuple[str, ...] = ()
    """Patterns of images that users who are not admins may name in options of agents, and repositories in
    Dockerfiles."""
    agent_variables: tuple[str, ...] = ()
    """Environment variables of the server that agents get if they request them, or if a user grants them."""
    agent_hosts: tuple[str, ...] = ()
    """Hosts that agents may reach under the same conditions: `HOST` while they run, `build:HOST` in builds."""
    agent_llm_fields: tuple[str, ...] = ()
    """Fields of requests to language models that users may grant to agents: names or patterns."""
    agent_llm_models: tuple[str, ...] = ()
    """Language models that users may grant to agents besides those that the gateway offers: names or patterns."""
    agent_tools: tuple[str, ...] = ()
    """MCP servers and skills of installed plugins that users may give to agents: ids or patterns."""
    oidc_issuer: str | None = None
    """URL of an OpenID provider with which people may sign in to the pages."""
    oidc_client: str | None = None
    oidc_secret: str | None = Field(default=None, repr=False)
    oidc_scope: str = "openid profile email"
    oidc_allow: tuple[str, ...] = ()
    """Rules for who may sign in with it: `CLAIM=PATTERN`, or `*`."""
    webhook_hosts: tuple[str, ...] = ()
    """Hosts, with or without a port, of webhooks that may be private, and use http."""
    retain: tuple[str, ...] = ()
    """How long ended runs are kept: `90d`, `PROJECT=30d`, `PROJECT=forever`; empty: forever."""
    half_life: float = Field(default=86400.0, ge=0)
    """Seconds after which a user's past use of the machine counts half as much in the fair share; 0: it does not
    count.
    """
    verify: bool = True
    """Whether the final code of runs is executed again to verify their results, unless a request overrides it."""
    lease: float = Field(default=30, ge=3)
    """Seconds after which a worker that does not renew its lease is killed, and its job given to another one."""
    stall_limit: float = Field(default=900, ge=3)
    """Seconds without CPU use after which a worker stops renewing its lease, except while it builds."""
    stage_limit: float = Field(default=12 * 3600, ge=10)
    """Maximum seconds for each stage of a run, except its agent, which has its own limit, and for other jobs."""
    min_free_mb: int = Field(default=512, ge=0)
    """Free disk space in MiB for the runs directory below which the service reports that it is not ready."""

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
