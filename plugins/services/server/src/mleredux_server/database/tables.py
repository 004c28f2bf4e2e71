"""All database tables.

A *job* is anything a worker does: a run, the grading of a submission, the build of an agent. The scheduler deals only
    with jobs; the details of a job are in the table of its type, under the same id.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, MetaData, String, Text, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mleredux_server.database.types import UtcTime, Words

_ID = String(128)


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraints have names, so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcTime(), dict[str, Any]: JSON(), list[str]: JSON()}


class _Owned:
    """Columns of records that users create in projects."""

    id: Mapped[str] = mapped_column(_ID, primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime] = mapped_column(default=now)


class _Scheduled(_Owned):
    """Columns that a run and its job have in common; each table has its own indexes on the project."""

    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    priority: Mapped[int] = mapped_column(default=0)
    preemptible: Mapped[bool] = mapped_column(default=False)
    started_at: Mapped[datetime | None]


class _Work:
    """Columns with the state of work that is listed: a run, a submission or a build."""

    status: Mapped[str] = mapped_column(String(16), default="queued")
    message: Mapped[str | None] = mapped_column(Words)
    ended_at: Mapped[datetime | None]


class Installation(Base):
    """The runs directory that this database belongs to: one row."""

    __tablename__ = "installation"
    id: Mapped[str] = mapped_column(_ID, primary_key=True)


class User(Base):
    """A user with tokens."""

    __tablename__ = "users"
    id: Mapped[str] = mapped_column(_ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    admin: Mapped[bool] = mapped_column(default=False)
    service: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it is a program."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    disabled_at: Mapped[datetime | None]


class Token(Base):
    """An API token; only its hash is stored."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(_ID, primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    project_id: Mapped[str | None] = mapped_column(ForeignKey("projects.id"))
    """Set if it is valid for one project only."""
    name: Mapped[str] = mapped_column(String(128))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class Identity(Base):
    """A user's identity at an OpenID provider."""

    __tablename__ = "identities"
    issuer: Mapped[str] = mapped_column(String(255), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)


class Project(Base):
    """A project, which owns runs that its members can see, and has its own quota."""

    __tablename__ = "projects"
    id: Mapped[str] = mapped_column(_ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    quota: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Fields of `mleredux_server.schemas.accounts.Quota`."""
    llm_tokens_used: Mapped[int] = mapped_column(BigInteger, default=0)
    """LLM tokens used by runs that have ended, including deleted ones."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)


class Member(Base):
    """A user's membership in a project."""

    __tablename__ = "members"
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(String(16), default="member")


class Job(_Scheduled, Base):
    """A worker's job, with the fields that the scheduler needs."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_state_kind", "state", "kind"),
        Index("ix_jobs_ended_at", "ended_at", "id"),
        Index("ix_jobs_project_id_state", "project_id", "state", "kind", "disk_mb"),
    )
    kind: Mapped[str] = mapped_column(String(16))
    """`run`, `grade` or `build`; `used` for a deleted run."""
    state: Mapped[str] = mapped_column(String(16), default="creating")
    """`creating` (not acknowledged yet: dropped after a kill), `queued`, `started`, `ended`."""
    cpus: Mapped[float] = mapped_column(default=1.0)
    memory_mb: Mapped[int] = mapped_column(default=0)
    gpus: Mapped[int] = mapped_column(default=0)
    disk_mb: Mapped[int] = mapped_column(default=0)
    """Disk space that it may use; once it has ended, the disk space that it used."""
    llm_tokens: Mapped[int | None] = mapped_column(BigInteger)
    """LLM tokens reserved from the project's quota until it has ended."""
    llm_tokens_counted: Mapped[int] = mapped_column(BigInteger, default=0)
    """LLM tokens already counted in the project's `llm_tokens_used`, since a retried run ends more than once."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Number of workers that started it since a user queued it."""
    cancel: Mapped[bool] = mapped_column(default=False)
    waiting_for: Mapped[str | None] = mapped_column(Text)
    worker_pid: Mapped[int | None]
    worker_birth: Mapped[float | None]
    queued_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class Experiment(_Owned, Base):
    """A matrix of runs."""

    __tablename__ = "experiments"
    name: Mapped[str] = mapped_column(String(128))
    request: Mapped[dict[str, Any]]


FACETS = ("status", "task", "agent", "seed", "medal", "verdict", "cause", "experiment_id", "arm")
"""Columns of runs that lists are filtered by; an index of all these columns is used to count their values."""


class RunRow(_Scheduled, _Work, Base):
    """The listed and filtered fields of a run; the directory is authoritative."""

    __tablename__ = "runs"
    __table_args__ = (
        *(
            Index(f"ix_runs_{name}_created_at", name, "created_at", "id")
            for name in ("project_id", "status", "task", "experiment_id", "agent", "cause", "medal", "verdict")
        ),
        Index("ix_runs_project_id_score", "project_id", "score", "id"),
        *(
            Index(f"ix_runs_{name}", name, "id")
            for name in ("created_at", "score", "percentile", "tokens", "cost_usd", "seconds")
        ),
        Index("ix_runs_facets", "project_id", *FACETS),
        Index("ix_runs_changes", "project_id", "updated_at", "log_bytes"),
    )
    experiment_id: Mapped[str | None] = mapped_column(ForeignKey("experiments.id"))
    arm: Mapped[str | None] = mapped_column(Text)
    retry_of: Mapped[str | None] = mapped_column(_ID)
    task: Mapped[str] = mapped_column(String(128))
    agent: Mapped[str] = mapped_column(Text)
    sandbox: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int] = mapped_column(BigInteger)
    network: Mapped[str] = mapped_column(String(16))
    obfuscated: Mapped[bool] = mapped_column(default=False)
    limits: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any]]
    labels: Mapped[dict[str, Any]]
    notes: Mapped[str | None] = mapped_column(Text)
    pinned: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it is kept regardless of the retention rules."""
    request: Mapped[dict[str, Any]]
    """The request, from which a retry creates a new run."""
    cause: Mapped[str | None] = mapped_column(String(32))
    score: Mapped[float | None]
    medal: Mapped[str | None] = mapped_column(String(16))
    percentile: Mapped[float | None]
    verdict: Mapped[str | None] = mapped_column(String(16))
    valid: Mapped[bool | None]
    seconds: Mapped[float | None]
    """The agent's run time."""
    paused_seconds: Mapped[float | None]
    tokens: Mapped[int | None] = mapped_column(BigInteger)
    """Input and output tokens of the last attempt."""
    cost_usd: Mapped[float | None]
    curve: Mapped[list[list[float]] | None] = mapped_column(JSON(none_as_null=True))
    """The score over time: `Run.curve`."""
    log_bytes: Mapped[int] = mapped_column(BigInteger, default=-1)
    """Size of the event log when this row was last updated from it."""
    updated_at: Mapped[datetime] = mapped_column(default=now)


class RunLabel(Base):
    """A run's label, for filtering; `RunRow.labels` is what is displayed."""

    __tablename__ = "run_labels"
    __table_args__ = (Index("ix_run_labels_name_value", "name", "value", "run_id"),)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[str] = mapped_column(String(128))


class Submission(_Owned, _Work, Base):
    """Predictions graded without an agent."""

    __tablename__ = "submissions"
    task: Mapped[str] = mapped_column(String(128))
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    report: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class BuildRow(_Owned, _Work, Base):
    """An agent's environment, built ahead of its runs."""

    __tablename__ = "builds"
    agent: Mapped[str] = mapped_column(Text)
    sandbox: Mapped[str] = mapped_column(String(64))
    options: Mapped[dict[str, Any]]
    image: Mapped[str | None] = mapped_column(Text)
    cached: Mapped[bool | None]


class Source(Base):
    """An agent's folder that a member of a project uploaded; identical folders are stored once."""

    __tablename__ = "sources"
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of all names and contents."""
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), primary_key=True, index=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
    files: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(default=now)


class Secret(Base):
    """A secret of a user or a project."""

    __tablename__ = "secrets"
    owner: Mapped[str] = mapped_column(_ID, primary_key=True)
    """Id of the user or project."""
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
    """Encrypted; see `mleredux_server.accounts.vault`."""
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    """The user who set it last."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class Webhook(_Owned, Base):
    """A URL that is notified of events in a project."""

    __tablename__ = "webhooks"
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[str]]
    secret: Mapped[str] = mapped_column(Text)
    """Encrypted; see `mleredux_server.accounts.vault`."""
    disabled_at: Mapped[datetime | None]


class Delivery(Base):
    """A message of a webhook."""

    __tablename__ = "deliveries"
    id: Mapped[str] = mapped_column(_ID, primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"), index=True)
    event: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    attempts: Mapped[int] = mapped_column(default=0)
    status: Mapped[int | None]
    message: Mapped[str | None] = mapped_column(Words)
    created_at: Mapped[datetime] = mapped_column(default=now)
    next_at: Mapped[datetime | None] = mapped_column(index=True)
    """When it will be sent next; None once it has been delivered or given up."""
    delivered_at: Mapped[datetime | None]


class Idempotency(Base):
    """The first response to a creating request, by its key."""

    __tablename__ = "idempotency"
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))
    """Hash of method, path and body."""
    status: Mapped[int | None]
    """None while the first request is in progress."""
    headers: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    body: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class Audit(Base):
    """The audit log."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    time: Mapped[datetime] = mapped_column(default=now, index=True)
    user_id: Mapped[str | None] = mapped_column(_ID)
    token_id: Mapped[str | None] = mapped_column(_ID)
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str | None] = mapped_column(Text)
