"""Recipes for known programs, from entry points in the group `mleredux.recipes` of this and other distributions."""

from __future__ import annotations

from importlib import metadata

from mleredux.errors import NotFound, PluginError, one_line
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
        raise NotFound(f"There is no recipe {name!r}.", hint=f"Recipes are: {', '.join(recipe_names())}.")
    owners = [point.dist.name if point.dist else point.value for point in points]
    if len(points) > 1:
        raise PluginError(f"The recipe {name!r} is in {' and in '.join(owners)}.", hint="Uninstall one of them.")
    try:
        recipe = points[0].load()
        if not isinstance(recipe, CommandRecipe):
            raise TypeError(f"{points[0].value} is not a CommandRecipe")
    except Exception as error:
        raise PluginError(
            f"The recipe {name!r} of {owners[0]} can't be loaded ({one_line(error)}).",
            hint=f"Fix or reinstall {owners[0]}.",
        ) from error
    return recipe


def _with_servers(command: str, entry: str) -> str:
    """Return a command, preceded by lines that set `$servers` to the run's MCP servers as JSON, by name.

    Args:
        command: The command.
        entry: An expression of `server` that returns a server in the program's own format.
    """
    return f"""\
servers="$(node -p '
const servers = Object.entries(require(process.env.MLEREDUX_MCP_FILE).mcpServers)
JSON.stringify(Object.fromEntries(servers.map(([name, server]) => [name, {entry}])))
')"
{command}"""


_CLAUDE_CODE = """\
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$MLEREDUX_MODEL" BASH_DEFAULT_TIMEOUT_MS=1800000 BASH_MAX_TIMEOUT_MS=7200000
mkdir -p "$HOME/.claude" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.claude/skills"
exec claude --print --model "$MLEREDUX_MODEL" --dangerously-skip-permissions \\
    --mcp-config "$MLEREDUX_MCP_FILE" --strict-mcp-config \\
    --output-format stream-json --verbose <"$MLEREDUX_PROMPT_FILE" >logs/claude-code.jsonl
"""
# Features that run at the provider, or need network access beyond the gateway, are disabled.
_CODEX = """\
export CODEX_HOME="$HOME/.codex"
mkdir -p "$CODEX_HOME" && cp -R "$MLEREDUX_SKILLS_DIR" "$CODEX_HOME/skills" && chmod -R u+w "$CODEX_HOME/skills"
cat >"$CODEX_HOME/config.toml" <<TOML
model_provider = "gateway"
web_search = "disabled"
[agents]
enabled = false
[features]
apps = false
goals = false
image_generation = false
plugins = false
[model_providers.gateway]
name = "gateway"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
TOML
node -e '
const text = JSON.stringify
const table = (all) => "{" + Object.entries(all || {}).map(([key, value]) => text(key) + " = " + text(value)) + "}"
for (const [name, server] of Object.entries(require(process.env.MLEREDUX_MCP_FILE).mcpServers)) {
  const lines = server.url
    ? ["url = " + text(server.url), "http_headers = " + table(server.headers)]
    : ["command = " + text(server.command), "args = " + text(server.args), "env = " + table(server.env)]
  for (const line of ["[mcp_servers." + text(name) + "]", ...lines]) console.log(line)
}' >>"$CODEX_HOME/config.toml"
exec codex exec --model "$MLEREDUX_MODEL" --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \\
    --json - <"$MLEREDUX_PROMPT_FILE" >logs/codex.jsonl
"""
_OPENCODE = _with_servers(
    """\
export OPENCODE_CONFIG="$HOME/opencode.json" OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
mkdir -p "$HOME/.config/opencode" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.config/opencode/skills"
cat >"$OPENCODE_CONFIG" <<JSON
{"autoupdate": false, "share": "disabled", "permission": "allow", "mcp": $servers, "provider": {"gateway": {
 "npm": "@ai-sdk/openai-compatible", "name": "gateway",
 "options": {"baseURL": "$OPENAI_BASE_URL", "apiKey": "{env:OPENAI_API_KEY}"},
 "models": {"$MLEREDUX_MODEL": {"name": "$MLEREDUX_MODEL"}}}}}
JSON
exec opencode run --model "gateway/$MLEREDUX_MODEL" --format json <"$MLEREDUX_PROMPT_FILE" >logs/opencode.jsonl
""",
    'server.url ? {type: "remote", url: server.url, headers: server.headers}'
    ' : {type: "local", command: [server.command, ...server.args], environment: server.env}',
)
_HTTP_URL = "server.url ? {httpUrl: server.url, headers: server.headers} : server"
_GEMINI_CLI = _with_servers(
    """\
export GEMINI_CLI_TRUST_WORKSPACE=true
mkdir -p "$HOME/.gemini" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.gemini/skills"
cat >"$HOME/.gemini/settings.json" <<JSON
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": false},
 "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "mcpServers": $servers,
 "tools": {"exclude": ["google_web_search", "web_fetch"]}}
JSON
exec gemini --model "$MLEREDUX_MODEL" --yolo --output-format stream-json \\
    <"$MLEREDUX_PROMPT_FILE" >logs/gemini-cli.jsonl
""",
    _HTTP_URL,
)
# It requires the name of its user, and the container's user has none.
_QWEN_CODE = _with_servers(
    """\
mkdir -p "$HOME/.qwen" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.qwen/skills"
printf '{"mcpServers": %s}' "$servers" >"$HOME/.qwen/settings.json"
cat >"$HOME/user.cjs" <<'JS'
const os = require("os")
const user = {uid: process.getuid(), gid: process.getgid(), username: "agent", homedir: os.homedir(), shell: null}
os.userInfo = () => user
require("module").syncBuiltinESMExports()
JS
export NODE_OPTIONS="--require=$HOME/user.cjs" OPENAI_MODEL="$MLEREDUX_MODEL"
exec qwen --auth-type openai --yolo --output-format stream-json <"$MLEREDUX_PROMPT_FILE" >logs/qwen-code.jsonl
""",
    _HTTP_URL,
)

# It edits one file, which is run after each edit; it sees errors up to three times. Commands that a model
# suggests are not run without a user.
_AIDER = """\
export OPENAI_API_BASE="$OPENAI_BASE_URL" LITELLM_LOCAL_MODEL_COST_MAP=True
{ cat "$MLEREDUX_PROMPT_FILE" && echo "Write the whole solution into code/solution.py. It is run after each edit."; } \\
    >"$HOME/message.md"
: >>code/solution.py
aider --model "openai/$MLEREDUX_MODEL" --weak-model "openai/$MLEREDUX_MODEL" --message-file "$HOME/message.md" \\
    --no-git --yes-always --no-check-update --no-show-release-notes --analytics-disable --no-show-model-warnings \\
    --no-detect-urls --no-suggest-shell-commands --no-pretty --no-stream --no-fancy-input --no-auto-lint \\
    --map-tokens 0 --auto-test --test-cmd "cd '$MLEREDUX_OUTPUT_DIR' && python3 code/solution.py" \\
    --input-history-file "$HOME/input" --chat-history-file logs/aider.md code/solution.py
test -s "$MLEREDUX_SUBMISSION" || python3 code/solution.py
"""
_TOOLS: tuple[ToolKind, ...] = ("mcp", "skill")
AIDER = CommandRecipe(_AIDER, "pip:aider-chat==0.86.2", "gpt-5.5")
"""Aider needs Python 3.12 or older in the base image, and `libraries=none`, because it pins numpy 1."""
CLAUDE_CODE = CommandRecipe(_CLAUDE_CODE, "npm:@anthropic-ai/claude-code@2.1.330", "claude-sonnet-4-5", tools=_TOOLS)
CODEX = CommandRecipe(_CODEX, "npm:@openai/codex@0.169.0", "gpt-5.5", tools=_TOOLS)
GEMINI_CLI = CommandRecipe(_GEMINI_CLI, "npm:@google/gemini-cli@0.61.0", "gemini-2.5-pro", tools=_TOOLS)
OPENCODE = CommandRecipe(_OPENCODE, "npm:opencode-ai@1.18.33", "gpt-5.5", tools=_TOOLS)
QWEN_CODE = CommandRecipe(_QWEN_CODE, "npm:@qwen-code/qwen-code@0.15.10", "qwen3-coder-plus", tools=_TOOLS)
