"""An MCP server on standard streams with one tool: how many rows a CSV file has."""

import csv
import json
import sys

TOOL = {"name": "count_rows", "description": "Count the rows of a CSV file.", "inputSchema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}  # fmt: skip

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "rows", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        with open(asked["params"]["arguments"]["path"], newline="") as file:
            text = f"{sum(1 for _ in csv.reader(file)) - 1} rows"
        result = {"content": [{"type": "text", "text": text}], "isError": False}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
