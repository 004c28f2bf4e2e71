"""For authors of tools: MCP servers and skills that users give to agents by name.

A plugin registers them; users select them with `mleredux run … --tool NAME`::

    from pathlib import Path

    from mleredux.plugin import hookimpl
    from mleredux.plugin.tool import Tool

    @hookimpl
    def mleredux_register_tools():
        here = Path(__file__).parent
        command = ("python3", "{folder}/server.py")
        return [
            Tool(id="profile", title="Profiles a table", command=command, folder=here / "mcp"),
            Tool(id="pandas", title="How this team writes pandas", folder=here / "skills" / "pandas"),
        ]
"""

from mleredux.models.agent import Tool as Tool
from mleredux.models.agent import ToolKind as ToolKind
