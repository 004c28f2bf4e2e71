"""Run Harbor's installed agents, using their own code for installing and running."""

from __future__ import annotations

import hashlib
import json
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import Agent, Build
from mleredux.plugin.files import FileLock, cache_dir, remove_tree
from mleredux_agents import CliOptions, CommandRecipe, cli_agent, libraries, read_options
from pydantic import field_validator

HARBOR = ("harbor==0.24.0", "uv==0.13.9")
"""Packages installed next to the agent; many installers use uv, and download it if it is missing."""
_INSTALLED = """
    acp aider antigravity-cli antigravity-sdk claude-code cline-cli code-puppy codex copilot-cli cortex-code cursor-cli
    deerflow devin eve fx fx-dev gemini-cli goose grok-build hermes junie kimi-cli kimi-code langgraph mcode mimo
    mini-swe-agent muse-code nemo-agent openclaw opencode openhands openhands-sdk pi qwen-coder rovodev-cli strands
    swe-agent trae-agent vibe
"""
NAMES = frozenset(_INSTALLED.split())
"""Installed agents in this version of Harbor."""
_FOLDER = Path(__file__).with_name("installed")
_FILES = ("Dockerfile", "runner.py")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+(\[[A-Za-z0-9._,-]+\])?==[^\s;]+")


class Options(CliOptions):
    """Options and their defaults."""

    name: str = ""
    """Name of one of Harbor's agents, such as `vibe`; or `MODULE:CLASS`, with its package in `install`."""
    install: str = ""
    """Requirements `NAME==VERSION` to install next to Harbor, separated by semicolons."""
    arguments: str = "{}"
    """Harbor's `--agent-kwarg`, as a JSON object: `{"version": "2.4.6"}`."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[\w.-]*(:\w+)?", value):
            raise ValueError(f"{value!r} is neither the name of an agent nor MODULE:CLASS")
        if value and ":" not in value and value not in NAMES:
            near = get_close_matches(value, NAMES, 1)
            known = f"did you mean {near[0]}?" if near else f"names are {', '.join(sorted(NAMES))}"
            raise ValueError(f"{HARBOR[0]} has no agent {value!r} that is installed in its environment; {known}")
        return value

    @field_validator("install")
    @classmethod
    def _are_requirements(cls, value: str) -> str:
        for part in filter(None, (piece.strip() for piece in value.split(";"))):
            if not _REQUIREMENT.fullmatch(part):
                raise ValueError(f"{part!r} has no version; use NAME==VERSION")
        return value

    @field_validator("arguments", mode="before")
    @classmethod
    def _is_an_object(cls, value: Any) -> str:
        try:
            read = json.loads(value) if isinstance(value, str) else value  # the command line already parses it
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise ValueError(f"{value!r} is not a JSON object")
        return json.dumps(read)


def configure(options: dict[str, Any]) -> Agent:
    """Return an agent that runs Harbor's agent from the options.

    Raises:
        MlereduxError: An option is invalid, or no option names an agent.
    """
    choice = read_options("harbor-agent", Options, options)
    if not choice.name:
        raise MlereduxError("No Harbor agent is set.", hint="Specify one: `-O name=vibe -O model=openai/gpt-5.5`.")
    return agent.model_copy(update={"command": _RECIPE.start(choice.model), "build": Build(context=_context(choice))})


def _context(choice: Options) -> Path:
    """Return the folder of the image's build context, named after a hash of its content."""
    wanted = libraries(choice.libraries)
    more = [part.strip() for part in choice.install.split(";") if part.strip()]
    texts = {
        "harbor.txt": "\n".join((*HARBOR, *more)),
        "solutions.txt": "\n".join(wanted.python),
        "agent.json": json.dumps({"name": choice.name, "arguments": json.loads(choice.arguments)}, sort_keys=True),
        **{name: (_FOLDER / name).read_text(encoding="utf-8") for name in _FILES},
    }
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    folder = cache_dir() / "harbor-agents" / digest[:20]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            fresh = folder.with_name(f".{folder.name}")
            remove_tree(fresh) if fresh.exists() else None
            fresh.mkdir()
            for name, text in texts.items():
                (fresh / name).write_text(text, encoding="utf-8")
            fresh.rename(folder)
    return folder


_RECIPE = CommandRecipe('exec /opt/harbor/bin/python /opt/harbor-agent/runner.py run "$MLEREDUX_MODEL"')

agent = cli_agent(
    id="harbor-agent",
    title="Any Harbor agent that is installed in its environment",
    recipe=CommandRecipe("echo 'Specify a Harbor agent: -O name=NAME.' >&2; exit 2"),
    options=Options,
    configure=configure,
    tools=("mcp", "skill"),
)
