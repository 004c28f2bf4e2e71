"""Recipes for known programs, from entry points in the group `mleredux.recipes` of this and other distributions."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from mleredux.errors import NotFound, PluginError, foreign_code
from mleredux.plugin.tool import ToolKind
from mleredux_agents import CommandRecipe

GROUP = "mleredux.recipes"


def recipe_names() -> list[str]:
    """Return the names of all installed recipes."""
    return sorted({point.name for point in metadata.entry_points(group=GROUP)})


def find_recipe(name: str) -> CommandRecipe:
    """Return a recipe by name.

    Raises:
        NotFound: There is no such recipe.
        PluginError: The recipe can't be imported, is not a recipe, or two distributions have a recipe with this name.
    """
    points = list(metadata.entry_points(group=GROUP, name=name))
    if not points:
        raise NotFound(f"There is no recipe {name!r}.", hint=f"The recipes are: {', '.join(recipe_names())}.")
    owners = [point.dist.name if point.dist else point.value for point in points]
    if len(points) > 1:
        raise PluginError(f"The recipe {name!r} is in {' and in '.join(owners)}.", hint="Uninstall one of them.")
    with foreign_code(
        PluginError, f"The recipe {name!r} of {owners[0]} can't be loaded", f"Fix or reinstall {owners[0]}."
    ):
        recipe = points[0].load()
        if not isinstance(recipe, CommandRecipe):
            raise TypeError(f"{points[0].value} is not a CommandRecipe")
    return recipe


def _script(name: str, entry: str | None = None) -> str:
    """Return a script, preceded by lines that set `$servers` to the run's MCP servers as JSON, by name.

    Args:
        name: The name of its file.
        entry: An expression of `server` that returns a server in the program's own format; None: these lines are
            omitted.
    """
    text = (_SCRIPTS / f"{name}.sh").read_text(encoding="utf-8")
    return (
        text
        if entry is None
        else (_SCRIPTS / "servers.sh").read_text(encoding="utf-8").replace("{entry}", entry) + text
    )


_SCRIPTS = Path(__file__).with_name("scripts")
_HTTP_URL = "server.url ? {httpUrl: server.url, headers: server.headers} : server"
_OWN_TYPES = (
    'server.url ? {type: "remote", url: server.url, headers: server.headers}'
    ' : {type: "local", command: [server.command, ...server.args], environment: server.env}'
)
_TOOLS: tuple[ToolKind, ...] = ("mcp", "skill")
# It edits one file, which is run after each edit; it sees errors up to three times. Commands that a model suggests are
# not run without a user. Features that run at a provider, or need network access beyond the gateway, are disabled.
AIDER = CommandRecipe(_script("aider"), "pip:aider-chat==0.86.2", "gpt-5.5")
"""Aider needs Python 3.12 or older in the base image, and `libraries=none`, because it pins numpy 1."""
CLAUDE_CODE = CommandRecipe(
    _script("claude-code"), "npm:@anthropic-ai/claude-code@2.1.330", "claude-sonnet-4-5", tools=_TOOLS
)
CODEX = CommandRecipe(_script("codex"), "npm:@openai/codex@0.169.0", "gpt-5.5", tools=_TOOLS)
GEMINI_CLI = CommandRecipe(
    _script("gemini-cli", _HTTP_URL), "npm:@google/gemini-cli@0.61.0", "gemini-2.5-pro", tools=_TOOLS
)
OPENCODE = CommandRecipe(_script("opencode", _OWN_TYPES), "npm:opencode-ai@1.18.33", "gpt-5.5", tools=_TOOLS)
# It needs the name of its user, and the container's user has none.
QWEN_CODE = CommandRecipe(
    _script("qwen-code", _HTTP_URL), "npm:@qwen-code/qwen-code@0.15.10", "qwen3-coder-plus", tools=_TOOLS
)
