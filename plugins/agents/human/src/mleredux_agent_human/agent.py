"""The agent's declaration."""

from __future__ import annotations

import unicodedata
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin import Scheme
from mleredux.plugin.agent import Agent, Build, Limits
from mleredux_agents import PERSON, PERSON_RULE, CliOptions, libraries, read_options

JUPYTER = "jupyterlab==4.6.6"


class Options(CliOptions):
    """Options and their defaults."""

    libraries: str = "none"
    jupyter: bool = False
    """Whether to start JupyterLab in addition to the shell."""
    commands: str = ""
    """Lines that the shell runs first, as if they were typed."""


def configure(options: dict[str, Any]) -> Agent:
    """Return the agent with the libraries that its options require.

    Raises:
        MlereduxError: An option is not valid.
    """
    chosen = read_options("human", Options, options)
    packages = libraries(chosen.libraries)
    python = (*packages.python, JUPYTER) if chosen.jupyter else packages.python
    build = agent.build.model_copy(update={"python": python, "debian": packages.debian})
    return agent.model_copy(update={"build": build})


agent = Agent(
    id="human",
    title="A person in a shell (`mleredux human start`)",
    command=("python", "-m", "mleredux_agent_human"),
    build=Build(packages=("mleredux_agent_human", "mleredux_agentkit")),
    limits=Limits(time_limit=7200),
    options=Options().model_dump(),
    configure=configure,
    needs=("person",),
    attend="{run} waits for you: in another terminal, `mleredux human start --attach {run}`.",
    tags=("no-llm",),
)


def named(reference: str) -> Agent:
    """Return the agent under a person's name: `human:ada`.

    Raises:
        MlereduxError: The text is not a name.
    """
    name = unicodedata.normalize("NFC", reference.removeprefix("human:"))
    if not PERSON.fullmatch(name):
        raise MlereduxError(f"{name!r} is not a valid user name.", hint=PERSON_RULE)
    return agent.model_copy(update={"reference": f"human:{name}"})


SCHEME = Scheme(id="human", title="People by name", find_agent=named)
