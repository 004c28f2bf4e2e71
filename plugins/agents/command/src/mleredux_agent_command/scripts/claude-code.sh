export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$MLEREDUX_MODEL" BASH_DEFAULT_TIMEOUT_MS=1800000 BASH_MAX_TIMEOUT_MS=7200000
mkdir -p "$HOME/.claude" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.claude/skills"
exec claude --print --model "$MLEREDUX_MODEL" --dangerously-skip-permissions \
    --mcp-config "$MLEREDUX_MCP_FILE" --strict-mcp-config \
    --output-format stream-json --verbose <"$MLEREDUX_PROMPT_FILE" >logs/claude-code.jsonl
