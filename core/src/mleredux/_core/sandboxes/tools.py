"""Tools for agents, MCP servers and skills, which are copied into the run's folder and recorded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mleredux._core.store.sparse import remove_tree
from mleredux.errors import WRONG_SHAPE, MlereduxError, NotFound, file_errors
from mleredux.models.agent import Tool
from mleredux.models.base import first_problem

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux.models import Agent

MCP_FILE, SKILLS, SERVERS = "mcp.json", "skills", "servers"
"""Names in the folder of the task: the file that lists servers under the key `mcpServers`, and the folders of skills
and of the servers' files."""
SKILL_FILE = "SKILL.md"
_MOST_BYTES = 100 << 20
_LEFT_OUT = frozenset({".git", "__pycache__", ".venv"})
_HEADER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^(name|description):[ \t]*(.+)$", re.MULTILINE)


def is_path(name: str) -> bool:
    """Return whether a tool is named by a path: that of a skill folder, or of a file of MCP servers."""
    return "/" in name or name.endswith(".json")


def absolute(name: str) -> str:
    """Return a tool's name in a form that is valid in any folder."""
    return str(Path(name).expanduser().absolute()) if is_path(name) else name


def find_tools(catalogue: Catalogue, names: Iterable[str]) -> tuple[Tool, ...]:
    """Return tools by their ids and paths.

    Raises:
        NotFound: A tool does not exist.
        MlereduxError: A path leads neither to a skill nor to a file of MCP servers, or two tools have the same id.
    """
    by_id: dict[str, Tool] = {}
    for name in dict.fromkeys(names):
        for tool in _at(Path(absolute(name))) if is_path(name) else [catalogue.tool(name)]:
            if tool.id in by_id:
                raise MlereduxError(f"There are two tools named {tool.id}.", hint="Rename or omit one of them.")
            by_id[tool.id] = tool
    return tuple(by_id.values())


def digests(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the SHA-256 of each tool (its declaration and its files), by id."""
    by_id = {}
    for tool in tools:
        digest = hashlib.sha256(tool.model_dump_json(exclude={"folder"}).encode())
        for path, content in _files(tool):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
        by_id[tool.id] = digest.hexdigest()
    return by_id


def write_tools(agent: Agent, tools: Iterable[Tool], folder: Path, place: str) -> dict[str, str]:
    """Write the tools into the folder of a run's task; return the variables that point to them.

    Args:
        agent: The agent; nothing is written if it supports no tools.
        tools: The result of `find_tools`.
        folder: The folder to write to.
        place: The path of the folder for the agent.

    Raises:
        MlereduxError: The files of a tool are too large, or can't be read.
    """
    for name in (SKILLS, SERVERS):
        remove_tree(folder / name)
    (folder / MCP_FILE).unlink(missing_ok=True)
    variables = {}
    servers: dict[str, Any] = {}
    for tool in tools:
        kept = f"{SKILLS if tool.kind == 'skill' else SERVERS}/{tool.id}"
        for path, content in _files(tool):
            target = folder / kept / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o755 if tool.folder and os.access(tool.folder / path, os.X_OK) else 0o644)
        if tool.kind == "mcp":
            servers[tool.id] = _entry(tool, f"{place}/{kept}")
    if "mcp" in agent.tools:
        (folder / MCP_FILE).write_text(json.dumps({"mcpServers": servers}, indent=1) + "\n", encoding="utf-8")
        variables["MLEREDUX_MCP_FILE"] = f"{place}/{MCP_FILE}"
    if "skill" in agent.tools:
        (folder / SKILLS).mkdir(exist_ok=True)
        variables["MLEREDUX_SKILLS_DIR"] = f"{place}/{SKILLS}"
    return variables


def tool_lines(tools: Iterable[Tool], place: str) -> str:
    """Return the lines about tools for the agent's instructions."""
    lines = []
    for tool in tools:
        title = tool.title.rstrip(".")
        if tool.kind == "mcp":
            lines.append(f"- You have the MCP server `{tool.id}`: {title}.")
        else:
            lines.append(
                f"- You have a skill: {title}. Read `{place}/{SKILLS}/{tool.id}/{SKILL_FILE}` when it applies."
            )
    return "".join(f"{line}\n" for line in lines)


def _entry(tool: Tool, place: str) -> dict[str, Any]:
    """Return a server in the format of `mcpServers`."""
    if tool.url is not None:
        return {"type": "http", "url": tool.url, **({"headers": tool.headers} if tool.headers else {})}
    command, *arguments = (part.replace("{folder}", place) for part in tool.command)
    return {"command": command, "args": arguments, "env": tool.env}


def _at(path: Path) -> Iterator[Tool]:
    """Yield the tools at a path on this machine."""
    if (path / SKILL_FILE).is_file():
        yield _skill(path)
        return
    if not path.is_file():
        raise NotFound(f"{path} is not a tool.", hint=f"Use a folder with {SKILL_FILE}, or a file with `mcpServers`.")
    hint = 'Write {"mcpServers": {"NAME": {"command": "…", "args": […]}}}.'
    with file_errors(MlereduxError, f"{path} contains no MCP servers", hint, ValueError, *WRONG_SHAPE):
        servers = json.loads(path.read_bytes())["mcpServers"].items()
    for name, entry in servers:
        try:
            yield _server(str(name), dict(entry), path.parent)
        except (ValidationError, ValueError, TypeError) as error:
            problem = first_problem(error).message if isinstance(error, ValidationError) else str(error)
            raise MlereduxError(f"The MCP server {name!r} in {path} is not valid: {problem}.") from None


def _server(name: str, entry: dict[str, Any], folder: Path) -> Tool:
    kind = str(entry.pop("type", "http" if "url" in entry else "stdio"))
    if kind not in ("stdio", "http", "streamable-http"):
        raise ValueError(f"the transport {kind!r} is not supported, only stdio and http are")
    files = entry.pop("folder", None)
    command = (entry.pop("command"), *entry.pop("args", ())) if "command" in entry else ()
    fields: dict[str, Any] = {key: entry[key] for key in ("env", "url", "headers", "title") if key in entry}
    return Tool(id=name, **{"title": name, **fields}, command=command, folder=folder / files if files else None)


def _skill(folder: Path) -> Tool:
    text = (folder / SKILL_FILE).read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    header = _HEADER.match(text)
    fields = {name: value.strip().strip("\"'") for name, value in _FIELD.findall(header[1])} if header else {}
    try:
        return Tool(id=fields.get("name", folder.name), title=fields.get("description", folder.name), folder=folder)
    except ValidationError as error:
        hint = "Names consist of letters, digits, `.`, `_` and `-`."
        raise MlereduxError(f"{folder / SKILL_FILE}: {first_problem(error).message}.", hint=hint) from None


def _files(tool: Tool) -> Iterator[tuple[str, bytes]]:
    """Yield paths and contents of a tool's regular files; links are not followed."""
    if tool.folder is None:
        return
    if not tool.folder.is_dir():
        raise MlereduxError(f"The files of the tool {tool.id} are not in {tool.folder}.", hint="Reinstall it.")
    size = 0
    for above, folders, names in os.walk(tool.folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            path = Path(above) / name
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            if (size := size + status.st_size) > _MOST_BYTES:
                raise MlereduxError(
                    f"The files of tool {tool.id} exceed {_MOST_BYTES >> 20} MB in total.", hint="Remove some of them."
                )
            yield path.relative_to(tool.folder).as_posix(), path.read_bytes()
