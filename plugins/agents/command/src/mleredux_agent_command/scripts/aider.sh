export OPENAI_API_BASE="$OPENAI_BASE_URL" LITELLM_LOCAL_MODEL_COST_MAP=True
{ cat "$MLEREDUX_PROMPT_FILE" && echo "Write the whole solution into code/solution.py. It is run after each edit."; } \
    >"$HOME/message.md"
: >>code/solution.py
aider --model "openai/$MLEREDUX_MODEL" --weak-model "openai/$MLEREDUX_MODEL" --message-file "$HOME/message.md" \
    --no-git --yes-always --no-check-update --no-show-release-notes --analytics-disable --no-show-model-warnings \
    --no-detect-urls --no-suggest-shell-commands --no-pretty --no-stream --no-fancy-input --no-auto-lint \
    --map-tokens 0 --auto-test --test-cmd "cd '$MLEREDUX_OUTPUT_DIR' && python3 code/solution.py" \
    --input-history-file "$HOME/input" --chat-history-file logs/aider.md code/solution.py
test -s "$MLEREDUX_SUBMISSION" || python3 code/solution.py
