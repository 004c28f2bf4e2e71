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
exec codex exec --model "$MLEREDUX_MODEL" --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
    --json - <"$MLEREDUX_PROMPT_FILE" >logs/codex.jsonl
