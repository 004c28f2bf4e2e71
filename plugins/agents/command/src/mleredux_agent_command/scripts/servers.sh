servers="$(node -p '
const servers = Object.entries(require(process.env.MLEREDUX_MCP_FILE).mcpServers)
JSON.stringify(Object.fromEntries(servers.map(([name, server]) => [name, {entry}])))
')"
