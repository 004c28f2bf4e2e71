#!/bin/sh
# Secrets are passed as files but needed as variables: set NAME from NAME_FILE=/run/secrets/name, then start the program.
set -eu

for name in MLEREDUX_SERVE_TOKEN PGPASSWORD OPENAI_API_KEY ANTHROPIC_API_KEY; do
    eval "file=\${${name}_FILE:-}"
    if [ -n "$file" ]; then
        [ -r "$file" ] || { echo "${name}_FILE names $file, which can't be read." >&2; exit 1; }
        value="$(cat "$file")"
        export "$name=$value"
    fi
done

mkdir -p "${TMPDIR:-/tmp}"
exec "$@"
