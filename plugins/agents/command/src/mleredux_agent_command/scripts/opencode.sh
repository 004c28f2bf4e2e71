export OPENCODE_CONFIG="$HOME/opencode.json" OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
mkdir -p "$HOME/.config/opencode" && ln -s "$MLEREDUX_SKILLS_DIR" "$HOME/.config/opencode/skills"
cat >"$OPENCODE_CONFIG" <<JSON
{"autoupdate": false, "share": "disabled", "permission": "allow", "mcp": $servers, "provider": {"gateway": {
 "npm": "@ai-sdk/openai-compatible", "name": "gateway",
 "options": {"baseURL": "$OPENAI_BASE_URL", "apiKey": "{env:OPENAI_API_KEY}"},
 "models": {"$MLEREDUX_MODEL": {"name": "$MLEREDUX_MODEL"}}}}}
JSON
exec opencode run --model "gateway/$MLEREDUX_MODEL" --format json <"$MLEREDUX_PROMPT_FILE" >logs/opencode.jsonl
