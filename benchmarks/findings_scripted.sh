#!/bin/sh
# Run findings_scripted.toml: the model of scripted_reader/ answers instead of a provider. Arguments go to the command.
set -eu
cd "$(dirname "$0")"
port=${SCRIPTED_PORT:-18733}
mleredux scripted-llm scripted_reader/scenario.yaml --port "$port" &
model=$!
trap 'kill "$model"' EXIT
export OPENAI_BASE_URL="http://127.0.0.1:$port/v1" OPENAI_API_KEY=scripted
export TINY_CODER="$(cd .. && pwd)/plugins/agents/command/tests/tiny-coder/index.js"
mleredux experiment findings findings_scripted.toml "$@"
