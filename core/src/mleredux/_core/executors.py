"""The protocols of executors, which place runs on machines, and of object stores, which transfer files between them."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Node:
    """A machine of an executor.

    Attributes:
        gpus: Number of GPUs.
        labels: Properties of the machine, such as partitions and features.
        up: Whether it can accept runs now.
    """

    name: str
    """The executor's name for the machine."""
    cpus: float
    """Number of CPU cores."""
    memory_mb: int
    """Memory in MiB."""
    gpus: int = 0
    labels: tuple[str, ...] = ()
    up: bool = True


@dataclass(frozen=True)
class JobSpec:
    """The input of `Executor.submit`: one run to execute.

    Attributes:
        folder: The run's directory on this machine.
        command: Executes the run until it ends. It may be restarted at any time, even on another node; only the most
            recently started process writes. SIGUSR1 signals that its time is nearly over, SIGTERM that it must stop;
            the run continues when the command is started again.
        limits: The limits of the run; the node needs a little more memory for the command itself.
        seconds: Maximum duration of the command, in seconds.
        shared: Whether the node must have access to the folder under the same path; otherwise the command uses an
            object store.
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
        """A directory that exists on the node, to start the command in."""
        return self.folder.parent if self.shared else Path("/")


@dataclass(frozen=True)
class JobStatus:
    """The state of a job on its executor.

    Attributes:
        state: `waiting` if the job is queued, suspended, or will be restarted by the executor itself.
        detail: The executor's own description of the state, for display.
    """

    state: Literal["waiting", "running", "ended"]
    detail: str = ""


@runtime_checkable
class Executor(Protocol):
    """Places runs on machines. All methods may be called from several threads."""

    id: str
    """The name to use with `--executor`."""
    title: str
    """A short description for lists."""
    allocates: bool
    """Whether a node reserves CPUs, memory and GPUs for each job; otherwise runs share the slots of the machine."""

    def check(self) -> list[Finding]:
        """Check whether the executor works."""

    def nodes(self) -> Sequence[Node]:
        """Return the machines.

        Raises:
            ExecutorError: The engine does not respond.
        """

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        """Start runs, or queue them in this order; return the id of each run's job.

        Raises:
            ExecutorError: The engine refused all of them, or does not respond.
        """

    def poll(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Return the current state of each job; `ended` for a job that is unknown or no longer known.

        Raises:
            ExecutorError: The engine does not respond.
        """

    def cancel(self, job: str) -> None:
        """Kill a job with all its processes, or remove it from the queue; nothing happens if it has ended.

        Raises:
            ExecutorError: The engine does not respond.
        """

    def fetch(self, spec: JobSpec) -> None:
        """Update the run's directory from the node; do nothing on a shared file system."""


class Nodes(Protocol):
    """Submits runs to executors, and changes their data in object stores."""

    def execute(self, pipeline: Pipeline, runs: Sequence[Run]) -> None:
        """Execute runs on the pipeline's executor until they end; runs submitted by an earlier call are only monitored.

        Raises:
            ExecutorError: The executor refused the runs, or none of its nodes is large enough for one of them.
        """

    def publish(self, run: Run) -> None:
        """Publish an ended run that was changed on this machine, if it was submitted to an executor through an object
        store.

        Raises:
            StoreError: The store can't be opened, or does not respond; the call can be repeated.
        """

    def delete(self, folder: Path) -> None:
        """Delete the data of an ended run from the object store through which it was submitted to an executor, if any.

        Args:
            folder: The directory of the run.

        Raises:
            StoreError: The store can't be opened, or does not respond; the call can be repeated.
        """


def open_nodes(catalogue: Catalogue) -> Nodes:
    """Return the object that submits runs to executors.

    Raises:
        ExecutorError: No installed plugin provides one.
    """
    nodes: Nodes | None = catalogue.hook("mleredux_open_nodes")(catalogue=catalogue)
    if nodes is None:
        raise ExecutorError(
            "No installed plugin can submit runs to executors.", hint="Install it: pip install mleredux-executor-nodes"
        )
    return nodes


class Stored(NamedTuple):
    """An object read from a store.

    Attributes:
        content: The content, in bytes.
        tag: A tag that changes with every write of the object.
    """

    content: bytes
    tag: str


@runtime_checkable
class ObjectStore(Protocol):
    """Stores objects by key. All methods may be called from several threads, and raise `StoreError` if the store does
    not respond."""

    url: str
    """The URL without credentials, which jobs receive on their command line."""
    variables: tuple[str, ...]
    """Environment variables that may hold credentials; a node deletes them before it executes a run."""

    def read(self, key: str) -> Stored | None:
        """Return an object, or None if it does not exist."""

    def write(self, key: str, content: bytes) -> None:
        """Write an object, replacing any existing one."""

    def swap(self, key: str, content: bytes, tag: str | None) -> str | None:
        """Replace an object if it still has this tag, or create it if it does not exist and `tag` is None.

        Returns:
            The new tag; None if another writer was first.
        """

    def keys(self, folder: str) -> Iterable[str]:
        """Return the keys of all objects under a folder, which ends without a slash."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
