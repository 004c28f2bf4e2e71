"""Known programs: what is installed, and how they are started without a terminal, led to the run's gateway."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """A program.

    Attributes:
        install: As the option `install`.
        command: As the option `command`. `$MLEREDUX_PROMPT_FILE` holds what the agent is told, `$MLEREDUX_MODEL` the
            model.
        model: Asked for where the user names none.
    """

    install: str
    command: str
    model: str


_CLAUDE_CODE = """\
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$MLEREDUX_MODEL" BASH_DEFAULT_TIMEOUT_MS=1800000 BASH_MAX_TIMEOUT_MS=7200000
exec claude --print --model "$MLEREDUX_MODEL" --dangerously-skip-permissions \\
    --output-format stream-json --verbose <"$MLEREDUX_PROMPT_FILE" >logs/claude-code.jsonl
"""
# What runs on the provider's side, or needs another network than the gateway, is switched off.
_CODEX = """\
export CODEX_HOME="$HOME/.codex"
mkdir -p "$CODEX_HOME"
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
exec codex exec --model "$MLEREDUX_MODEL" --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \\
    --json - <"$MLEREDUX_PROMPT_FILE" >logs/codex.jsonl
"""

RECIPES = {
    "claude-code": Recipe("npm:@anthropic-ai/claude-code@2.1.330", _CLAUDE_CODE, "claude-sonnet-4-5"),
    "codex": Recipe("npm:@openai/codex@0.169.0", _CODEX, "gpt-5.5"),
}
