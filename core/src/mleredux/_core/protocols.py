"""The roles that plugins play, on one page. Tasks, agents and graders are data; sandboxes act."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mleredux._core.capabilities import Capabilities
from mleredux._core.models import Agent, Attempts, Limits, LlmUse


@dataclass(frozen=True)
class Finding:
    """What a check found: for `mleredux doctor`.

    Attributes:
        name: What was looked at.
        ok: Whether it is as it should be.
        message: One sentence on what was found.
        remedy: One sentence on what to do, where not ok.
    """

    name: str
    ok: bool
    message: str
    remedy: str | None = None


@dataclass(frozen=True)
class BuildRequest:
    """What `Sandbox.build` gets: the agent, where its log goes, and a place to say what is going on."""

    agent: Agent
    log: Path
    progress: Callable[[str], None] = lambda _message: None
    base_image: str | None = None
    time_limit: float = 3600


@dataclass(frozen=True)
class Built:
    """An agent's environment, ready to start.

    Attributes:
        identity: What it is, by content; a run goes on only with the same.
        reference: What `Sandbox.start` needs to find it (an image tag).
        cached: Whether nothing had to be built.
    """

    identity: str
    reference: str
    cached: bool


@dataclass(frozen=True)
class Launch:
    """What `Sandbox.start` gets. All folders exist; the sandbox gives the agent `layout()`'s names for them.

    Attributes:
        run_id: Labels whatever the sandbox creates.
        owner: Identity of the store the run belongs to, a label too.
        task_dir: To be read only: description, instructions, an empty `data`, `validate.sh`.
        data_dir: To be read only, seen as the folder `data` of the task: the task's public files.
        output_dir: To be written, kept.
        scratch_dir: To be written, thrown away.
        control_dir: A folder of the sandbox's own in the run, for what it needs to find the agent again.
        log: Standard output and error of the agent are appended here, as bytes.
        env: All variables of the agent; nothing else of the host's environment reaches it.
        gpu_ids: Devices handed to this run.
        validate_socket: Unix socket on which the validation endpoint answers, alone in a folder that keeps its path
            when the run is resumed.
        validate_url: The same endpoint on the loopback of this machine.
        gateway_socket: With network `gateway`, the Unix socket of the gateway, in the folder of `validate_socket`.
        gateway_url: The same gateway on the loopback of this machine.
    """

    run_id: str
    owner: str
    agent: Agent
    built: Built
    command: tuple[str, ...]
    limits: Limits
    network: str
    task_dir: Path
    data_dir: Path
    output_dir: Path
    scratch_dir: Path
    control_dir: Path
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    gpu_ids: tuple[str, ...] = ()
    validate_socket: Path | None = None
    validate_url: str = ""
    gateway_socket: Path | None = None
    gateway_url: str = ""


@dataclass(frozen=True)
class Session:
    """What `mleredux_run_agent` gets beside the launch: what happened before, and how to tell what happens.

    Attributes:
        attempts: Agents of the run that were started before.
        emit: Writes an event to the run's log, a typed one or `emit(type, **data)`.
        cancelled: Whether somebody asked to stop.
        look: To be called about every second: keeps versions of the submission.
    """

    attempts: Attempts
    emit: Callable[..., Any]
    cancelled: Callable[[], bool]
    look: Callable[[], None]


@dataclass(frozen=True)
class Exit:
    """How the agent's main process ended.

    Attributes:
        code: Exit code, None where a signal ended it.
        signal: Signal number, None where it exited.
        out_of_memory: Whether the memory limit ended it.
    """

    code: int | None
    signal: int | None = None
    out_of_memory: bool = False


@dataclass(frozen=True)
class Usage:
    """Resources used so far; None where the sandbox can't tell."""

    memory_mb: float | None = None
    cpu_seconds: float | None = None
    processes: int | None = None


class Handle(Protocol):
    """A started agent. Methods are called from one thread; none raises when the agent is gone already."""

    id: str
    """Container id or process id, for the event log."""
    started_at: float
    """Unix time."""

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""

    def usage(self) -> Usage:
        """Resources used so far."""

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM)."""

    def kill(self) -> None:
        """Stop it and everything it started (SIGKILL)."""

    def close(self) -> None:
        """Remove all traces but the folders of the launch; the log is complete when this returns."""


@dataclass(frozen=True)
class Layout:
    """Where the agent finds things."""

    task: str
    data: str
    output: str
    scratch: str
    validate_url: str
    gateway_url: str = ""


class Gateway(Protocol):
    """The metered way of one run to language models, open from before the agent starts until after it is gone."""

    url: str
    """On the loopback of this machine, for sandboxes that share it: `http://127.0.0.1:PORT`."""
    secrets: tuple[str, ...]
    """Values that are masked in everything that is kept: the run's token."""

    def environment(self, url: str) -> dict[str, str]:
        """The agent's variables (`OPENAI_BASE_URL`, `OPENAI_API_KEY`, …).

        Args:
            url: The gateway as the agent reaches it, without a path.
        """

    def close(self) -> LlmUse:
        """Stop answering; what the run used in all, earlier attempts included."""


@runtime_checkable
class Sandbox(Protocol):
    """Where agents run. `mleredux_testing.check_sandbox` runs the conformance checks against any of them."""

    id: str
    title: str
    capabilities: Capabilities
    """What it can do; agents that need no more can run in it."""

    def check(self) -> list[Finding]:
        """What is missing for it to work here."""

    def build(self, request: BuildRequest) -> Built:
        """Make the agent's environment, or find it in the cache.

        Raises:
            BuildFailed: The build ended with an error; the log says why.
            SandboxError: The sandbox itself does not work.
        """

    def layout(self, launch: Launch) -> Layout:
        """Where the agent of this launch finds things; its variables are made from it."""

    def start(self, launch: Launch) -> Handle:
        """Start the agent.

        Raises:
            SandboxError: It could not be started.
        """

    def attach(self, launch: Launch) -> Handle | None:
        """The agent of this launch where it runs (or ended) since before this program was started, or None."""

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Remove what runs of this owner left behind whose id is not alive; give their ids."""
