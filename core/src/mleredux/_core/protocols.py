"""Protocols of the plugin roles with methods: sandboxes and gateways. Tasks, agents and graders are declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mleredux._core.plugins.capabilities import Capabilities
from mleredux.errors import Cancelled
from mleredux.models import Agent, Attempts, HostUse, Limits, LlmUse


@dataclass(frozen=True)
class Finding:
    """The result of a check, for `mleredux doctor`.

    Attributes:
        name: The subject of the check.
        ok: Whether the check passed.
        message: One sentence about the result.
        remedy: One sentence about what to do, if not ok.
    """

    name: str
    ok: bool
    message: str
    remedy: str | None = None


@dataclass(frozen=True)
class BuildRequest:
    """The input of `Sandbox.build`: the agent, the path of the build log, and a callback for progress."""

    agent: Agent
    """The agent to build for, configured by its options."""
    log: Path
    """The file to which the output of the build is appended."""
    progress: Callable[[str], None] = lambda _message: None
    """Called with a sentence about each step."""
    base_image: str | None = None
    """The image to build on; None: the default of the sandbox."""
    time_limit: float = 3600
    """Time limit of the build in seconds."""
    hosts: tuple[str, ...] | None = None
    """Hosts that the build can reach besides package registries; None: every public host."""
    record: Callable[[HostUse], object] = lambda _use: None
    """Called with each host that the build reached."""
    cancelled: Callable[[], bool] = lambda: False
    """Returns whether the user has stopped the build; called continuously during the build."""

    def check_cancelled(self) -> None:
        """Raise an exception if the user has stopped the build.

        Raises:
            Cancelled: The user has stopped the build.
        """
        if self.cancelled():
            raise Cancelled


@dataclass(frozen=True)
class Built:
    """An agent's environment, ready to start.

    Attributes:
        identity: Identity by content; a run can only be resumed with the same environment.
        reference: The reference that `Sandbox.start` uses (an image tag).
        cached: Whether nothing had to be built.
    """

    identity: str
    reference: str
    cached: bool


@dataclass(frozen=True)
class Launch:
    """The input of `Sandbox.start`. All folders exist; the agent sees them under the paths of `layout()`.

    Attributes:
        run_id: Label of everything that the sandbox creates.
        owner: Identity of the store the run belongs to, also a label.
        task_dir: Read-only: the description, instructions, `validate.sh`, and an empty folder `data`.
        data_dir: Read-only, mounted as the folder `data` of the task: the task's public files.
        output_dir: Writable; its content is stored.
        scratch_dir: Writable; its content is discarded.
        control_dir: A folder in the run for the sandbox's own state, such as the data that it needs to find the agent
            again.
        staging_dir: A folder for files that the sandbox mounts for the agent, whose path reveals nothing about the run;
            None: the control folder.
        log: Standard output and error of the agent are appended here, as bytes.
        env: All environment variables of the agent; no other variable of the host is passed on.
        gpu_ids: Devices assigned to this run.
        validate_socket: Unix socket of the validation endpoint, in a folder whose path stays the same when the run is
            resumed.
        validate_url: The same endpoint on the loopback interface of this machine.
        gateway_socket: With network `gateway`, the Unix socket of the gateway, in the folder of `validate_socket`.
        gateway_url: The same gateway on the loopback interface of this machine.
        proxy_socket: In the same folder, the socket of the proxy to the allowed hosts. A sandbox that supports `hosts`
            serves it on localhost instead of any other network.
        known_answers: Functions of libraries that return the task's answers: a sandbox hides their data files if it
            can, as `mleredux_containers.container` does.
        bound: Whether to end the agent when this program is killed, because no client can reach it anymore; a sandbox
            may leave this to the sweep at the next start.
    """

    run_id: str
    owner: str
    agent: Agent
    """The agent, configured by its options."""
    built: Built
    """The environment that `Sandbox.build` returned."""
    command: tuple[str, ...]
    """The program and its arguments, with the paths that `layout()` returned."""
    limits: Limits
    """The limits to enforce."""
    network: str
    """`none`, `gateway` or `open`."""
    task_dir: Path
    data_dir: Path
    output_dir: Path
    scratch_dir: Path
    control_dir: Path
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    gpu_ids: tuple[str, ...] = ()
    staging_dir: Path | None = None
    validate_socket: Path | None = None
    validate_url: str = ""
    gateway_socket: Path | None = None
    gateway_url: str = ""
    proxy_socket: Path | None = None
    known_answers: tuple[str, ...] = ()
    bound: bool = False


@dataclass(frozen=True)
class Session:
    """The input of `mleredux_run_agent` in addition to the launch: earlier attempts, and callbacks.

    Attributes:
        attempts: Agents of the run that were started earlier.
        emit: Writes an event to the run's log: an event object, or `emit(type, **data)`.
        cancelled: Returns whether cancellation was requested.
        look: Stores versions of the submission; must be called about every second.
        spent: Returns the exhausted LLM budget, if it should end the agent.
        paused: Returns the number of seconds for which the clock of the time limit was paused, because models were
            unavailable.
    """

    attempts: Attempts
    emit: Callable[..., Any]
    cancelled: Callable[[], bool]
    look: Callable[[], None]
    spent: Callable[[], str | None] = lambda: None
    paused: Callable[[], float] = lambda: 0.0


@dataclass(frozen=True)
class Exit:
    """How the agent's main process ended.

    Attributes:
        code: The exit code; None if a signal ended the process.
        signal: The signal number; None if the process exited.
        out_of_memory: Whether the memory limit ended the process.
    """

    code: int | None
    signal: int | None = None
    out_of_memory: bool = False


@dataclass(frozen=True)
class Usage:
    """Resources used so far; None if unknown to the sandbox."""

    memory_mb: float | None = None
    """Memory in MiB currently used by all processes together."""
    cpu_seconds: float | None = None
    """CPU seconds used since the start."""
    processes: int | None = None
    """Current number of processes and threads."""


class Handle(Protocol):
    """A started agent. Methods are called from one thread; none raises if the agent has already ended."""

    id: str
    """Container id or process id, for the event log."""
    started_at: float
    """Unix time of the start."""

    def poll(self) -> Exit | None:
        """Return how the agent ended, or None while it runs."""

    def usage(self) -> Usage:
        """Return the resources used so far."""

    def terminate(self) -> None:
        """Request the agent to stop (SIGTERM)."""

    def kill(self) -> None:
        """Kill the agent and everything it started (SIGKILL)."""

    def close(self) -> None:
        """Remove everything except the folders of the launch; the log is complete when this returns."""


@dataclass(frozen=True)
class Layout:
    """The paths and URLs under which the agent finds its files and services."""

    task: str
    """The folder with the description and the instructions, read-only."""
    data: str
    """The folder with the public files of the task, read-only."""
    output: str
    """The folder of the submission and of all files to store."""
    scratch: str
    """The folder for temporary files."""
    validate_url: str
    """The URL of the validation endpoint."""
    gateway_url: str = ""
    """The URL of the gateway, without a path; empty if there is none."""


class Egress(Protocol):
    """The only way out of a sandbox to allowed hosts, for one run."""

    path: Path
    """The Unix socket of the proxy."""

    def start(self) -> None:
        """Start serving."""

    def stop(self) -> None:
        """Stop serving, and record the traffic of each host."""


@runtime_checkable
class HostFilter(Protocol):
    """A sandbox with the network `hosts`: it opens the proxy through which a run reaches its allowed hosts."""

    def open_egress(self, path: Path, hosts: Iterable[str], record: Callable[[HostUse], object]) -> Egress:
        """Return the proxy of a run, without starting it.

        Args:
            path: The Unix socket to serve on, which containers mount.
            hosts: The allowed hosts, as for `--allow-host`; `*` is any public host.
            record: Called with each host at first contact, and with its final counts.
        """


class Gateway(Protocol):
    """The metered access of one run to LLMs, open from before the agent starts until after it has ended."""

    url: str
    """URL on the loopback interface of this machine, for sandboxes that share it: `http://127.0.0.1:PORT`."""
    secrets: tuple[str, ...]
    """Values to mask in all stored files: the run's token."""

    def environment(self, url: str) -> dict[str, str]:
        """Return the agent's environment variables (`OPENAI_BASE_URL`, `OPENAI_API_KEY`, …).

        Args:
            url: The URL of the gateway as seen by the agent, without a path.
        """

    def paused(self) -> float:
        """Return the number of seconds for which the providers have been down; the run's clock pauses for this time."""

    def close(self) -> LlmUse:
        """Stop serving; return the total usage of the run, including earlier attempts."""


@runtime_checkable
class Sandbox(Protocol):
    """Builds and runs agents. `mleredux_testing.check_sandbox` runs the conformance checks for any sandbox."""

    id: str
    """The name to use with `--sandbox`."""
    title: str
    """A short description for lists."""
    capabilities: Capabilities
    """The capabilities of the sandbox; it can run agents whose requirements it meets."""

    def check(self) -> list[Finding]:
        """Check whether the sandbox works on this machine."""

    def build(self, request: BuildRequest) -> Built:
        """Build the agent's environment, or find it in the cache.

        Raises:
            BuildFailed: The build ended with an error; the log contains the reason.
            SandboxError: The sandbox itself failed.
        """

    def layout(self, launch: Launch) -> Layout:
        """Return the paths and URLs of this launch as seen by the agent; its variables are derived from them."""

    def start(self, launch: Launch) -> Handle:
        """Start the agent.

        Raises:
            SandboxError: The agent could not be started.
        """

    def attach(self, launch: Launch) -> Handle | None:
        """Return the agent of this launch, running or ended, if an earlier process started it; else None."""

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """Remove the resources of this owner's runs for whose ids `alive` returns False; return these ids.

        The result may be lazy: callers iterate over it.
        """


@runtime_checkable
class Discarding(Protocol):
    """A sandbox whose environments take up space that `run --watch` and `prune` can free."""

    def discard(self, identity: str) -> None:
        """Remove an environment by its `Built.identity` or `reference`, if nothing else uses it."""
