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
    chosen = read_options("command", Options, options)
    recipe = find_recipe(chosen.recipe) if chosen.recipe else CommandRecipe("")
    install = f"{recipe.install}; {chosen.install}"
    recipe = replace(recipe, command=chosen.command or recipe.command, install=install)
    build = recipe.build(chosen.libraries)
    if chosen.image:
        build = Build(image=chosen.image)
    elif chosen.context:
        build = Build(context=Path(chosen.context).absolute())
    return agent.model_copy(
        update={
            "command": recipe.start(chosen.model) if recipe.command else (),
            "build": build,
            "tools": recipe.tools if chosen.recipe and not chosen.command else agent.tools,
        }
    )


agent = cli_agent(
    id="command",
    title="Any program: coding CLIs from npm, from Python, or in their own image",
    recipe=CommandRecipe("echo 'Specify a command or a recipe.' >&2; exit 2"),
    options=Options,
    configure=configure,
    unisolated="named",
    tools=("mcp", "skill"),
)
