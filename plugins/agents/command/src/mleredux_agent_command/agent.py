"""Declaration of the agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mleredux.plugin.agent import Agent, Build
from mleredux_agents import CommandRecipe, cli_agent, read_options

from mleredux_agent_command.options import Options
from mleredux_agent_command.recipes import find_recipe


def configure(options: dict[str, Any]) -> Agent:
    """Return the agent that runs the program from the options.

    Raises:
        MlereduxError: An option is invalid.
    """
    asked = read_options("command", Options, options)
    recipe = find_recipe(asked.recipe) if asked.recipe else CommandRecipe("")
    install = f"{recipe.install}; {asked.install}"
    recipe = replace(recipe, command=asked.command or recipe.command, install=install)
    build = recipe.build(asked.libraries)
    if asked.image:
        build = Build(image=asked.image)
    elif asked.context:
        build = Build(context=Path(asked.context).absolute())
    return agent.model_copy(
        update={
            "command": recipe.start(asked.model) if recipe.command else (),
            "build": build,
            "tools": recipe.tools if asked.recipe and not asked.command else agent.tools,
        }
    )


agent = cli_agent(
    id="command",
    title="Any program: coding CLIs from npm, from Python, or in their own image",
    recipe=CommandRecipe("echo 'Name a command or a recipe.' >&2; exit 2"),
    options=Options,
    configure=configure,
    unisolated="named",
    tools=("mcp", "skill"),
)
