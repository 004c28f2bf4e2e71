"""The protocols of executors, which place runs on machines, and of object stores, which carry files between them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from mleredux._core.protocols import Finding
from mleredux.errors import ExecutorError
from mleredux.models import Limits

if TYPE_CHECKING:
    from mleredux._core.pipeline import Pipeline
    from mleredux._core.plugins import Catalogue
    from mleredux._core.store import Run

_OF_SERVERS = (
    *("MLEREDUX_SERVE_TOKEN", "MLEREDUX_DATABASE", "MLEREDUX_SECRETS_KEY", "MLEREDUX_OIDC_SECRET", "MLEREDUX_TOKEN"),
    *("PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
)


def job_environment() -> dict[str, str]:
    """Return the environment of jobs: that of this process without variables that only a server may know."""
    return {name: value for name, value in os.environ.items() if name not in _OF_SERVERS}


@dataclass(frozen=True)
class Node:
    """A machine of an executor.

    Attributes:
        gpus: Number of GPUs.
        labels: What distinguishes it: partitions, features.
        up: Whether it can get runs now.
    """

    name: str
    """The name of the machine at the executor."""
    cpus: float
    """Number of CPU cores."""
    memory_mb: int
    """Memory in MiB."""
    gpus: int = 0
    labels: tuple[str, ...] = ()
    up: bool = True


@dataclass(frozen=True)
class Ticket:
    """The input of `Executor.give`: one run to execute.

    Attributes:
        folder: The run's directory here.
        command: Executes the run to its end. It may be started again at any time, also on another node: only the last
            one that was started writes. SIGUSR1 tells it that its time is nearly over, SIGTERM that it must stop; the
            run then goes on when the command is started again.
        limits: What the run may use; the node needs a little more memory for the command itself.
        seconds: How long the command takes at most.
        shared: Whether the node must see the folder, under the same path; else the command uses an object store.
    """

    run_id: str
    """Id of the run, unique among the runs of the executor."""
    folder: Path
    command: tuple[str, ...]
    limits: Limits
    seconds: float
    shared: bool = True

    @property
    def work_dir(self) -> Path:
        """A directory that exists on the node, in which the command can start."""
        return self.folder.parent if self.shared else Path("/")


@dataclass(frozen=True)
class JobStatus:
    """The state of a job at its executor.

    Attributes:
        state: `waiting` if it is queued, suspended, or will be started again by the executor itself.
        detail: The executor's own words on it, for people.
    """

    state: Literal["waiting", "running", "ended"]
    detail: str = ""


@runtime_checkable
class Executor(Protocol):
    """Places runs on machines. All methods may be called from several threads."""

    id: str
    """The name that `--executor` takes."""
    title: str
    """A short description for lists."""
    allocates: bool
    """Whether a node gives each job CPUs, memory and GPUs of its own; else runs share the slots of the machine."""

    def check(self) -> list[Finding]:
        """Check whether it works."""

    def nodes(self) -> Sequence[Node]:
        """Return the machines.

        Raises:
            ExecutorError: The engine does not respond.
        """

    def give(self, tickets: Sequence[Ticket]) -> Sequence[str]:
        """Start runs, or queue them in this order; return the id of each one's job.

        Raises:
            ExecutorError: The engine refused all of them, or does not respond.
        """

    def news(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Return the current state of each job; `ended` for one that is not known (any more).

        Raises:
            ExecutorError: The engine does not respond.
        """

    def stop(self, job: str) -> None:
        """Kill a job with all its processes, or remove it from the queue; nothing happens if it has ended.

        Raises:
            ExecutorError: The engine does not respond.
        """

    def pull(self, ticket: Ticket) -> None:
        """Bring the run's directory up to date with the node's; nothing on a shared file system."""


class Nodes(Protocol):
    """Gives runs to executors, and changes what object stores have of them."""

    def execute(self, pipeline: Pipeline, runs: Sequence[Run]) -> None:
        """Execute runs at the pipeline's executor to their end; those that it has from an earlier call are followed.

        Raises:
            ExecutorError: The executor refused them, or has no node that is large enough for one.
        """

    def publish(self, run: Run) -> None:
        """Publish an ended run that was changed here, if it was given to an executor through an object store.

        Raises:
            StoreError: The store can't be opened, or does not respond; it can be called again.
        """

    def delete(self, folder: Path) -> None:
        """Delete what an object store has of an ended run that was given to an executor through one.

        Args:
            folder: The directory of the run.

        Raises:
            StoreError: The store can't be opened, or does not respond; it can be called again.
        """


def open_nodes(catalogue: Catalogue) -> Nodes:
    """Return what gives runs to executors.

    Raises:
        ExecutorError: No installed plugin does.
    """
    nodes: Nodes | None = catalogue.hook("mleredux_open_nodes")(catalogue=catalogue)
    if nodes is None:
        raise ExecutorError(
            "No installed plugin gives runs to executors.", hint="Install it: pip install mleredux-executor-nodes"
        )
    return nodes


class Stored(NamedTuple):
    """An object as it was read.

    Attributes:
        content: Its bytes.
        tag: Changes with every write of it.
    """

    content: bytes
    tag: str


@runtime_checkable
class ObjectStore(Protocol):
    """Objects by key. All methods may be called from several threads, and raise `StoreError` if it does not respond."""

    url: str
    """Without credentials: jobs get it in their command line."""
    variables: tuple[str, ...]
    """Environment variables that may hold credentials; a node deletes them before it executes a run."""

    def read(self, key: str) -> Stored | None:
        """Return an object; None if there is none."""

    def write(self, key: str, content: bytes) -> None:
        """Write an object, whatever is there."""

    def swap(self, key: str, content: bytes, tag: str | None) -> str | None:
        """Replace an object if it still has this tag, or create it if there is none and `tag` is None.

        Returns:
            The new tag; None if another writer was first.
        """

    def keys(self, folder: str) -> Iterable[str]:
        """Return the keys of all objects below a folder, which ends without a slash."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
