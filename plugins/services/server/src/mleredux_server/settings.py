"""What a service is started with."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """What a service is started with; `mleredux serve --help` says each in words."""

    model_config = ConfigDict(frozen=True)

    runs_dir: Path
    data_dir: Path | None = None
    database: str | None = None
    """URL of SQLAlchemy's form; None: SQLite in the state folder."""
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=0, ge=0)
    """Processes that execute runs; 0: as many as there are CPUs."""
    base_image: str | None = None
    max_upload_mb: int = Field(default=2048, ge=1)
    max_body_kb: int = Field(default=1024, ge=16)
    """Of requests that are no upload."""
    requests_per_minute: int = Field(default=1200, ge=1)
    """Of one token."""
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    repo_hosts: tuple[str, ...] = ()
    """Hosts that repositories may be fetched from for users who don't run the server; empty: any that is public."""
    agent_images: tuple[str, ...] = ()
    """Patterns of images that such users may name in options of agents."""
    agent_variables: tuple[str, ...] = ()
    """Variables of the server that agents of repositories may take for such users."""
    min_free_mb: int = Field(default=512, ge=0)
    """With less on the disk of the runs directory, the service says that it is not ready."""

    @property
    def state_dir(self) -> Path:
        """Everything the service keeps beside the runs."""
        return self.runs_dir / ".server"

    @property
    def database_url(self) -> str:
        """URL of the database, with its driver."""
        url = self.database or f"sqlite:///{(self.state_dir / 'service.sqlite').resolve()}"
        for scheme in ("postgresql://", "postgres://"):
            if url.startswith(scheme):
                return "postgresql+psycopg://" + url.removeprefix(scheme)
        return url
