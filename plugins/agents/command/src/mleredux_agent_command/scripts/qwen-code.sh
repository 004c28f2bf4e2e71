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
