export GEMINI_CLI_TRUST_WORKSPACE=true
mkdir -p "$HOME/.gemini" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.gemini/skills"
cat >"$HOME/.gemini/settings.json" <<JSON
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": false},
 "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "mcpServers": $servers,
 "tools": {"exclude": ["google_web_search", "web_fetch"]}}
JSON
exec gemini --model "$MLEREDUX_MODEL" --yolo --output-format stream-json \
    <"$MLEREDUX_PROMPT_FILE" >logs/gemini-cli.jsonl
