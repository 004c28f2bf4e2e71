"""Agents without a manifest: a script, a notebook, or a folder with one of them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import Agent, AgentFolder, Build

from mleredux_agent_repo.manifest import MANIFEST, BadManifest

SUFFIXES = (".py", ".ipynb", ".sh")
PLACE = "/opt/agent"
_USUAL = ("main.py", "solve.py", "run.py", "agent.py", "train.py", "__main__.py", "solve.ipynb", "main.ipynb", "run.sh")
_REQUIREMENTS = "requirements.txt"
_BLOCK = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""Inline metadata, by the regular expression of PEP 723."""
_VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", "MLEREDUX_AGENT_DIR": PLACE}


def find_script(folder: Path, shown: str) -> Path:
    """The script that a folder without a manifest is run by.

    Raises:
        BadManifest: There is none, or which one is not clear.
    """
    there = sorted(path.name for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    usual = [name for name in _USUAL if name in there]
    if usual or len(there) == 1:
        return folder / (usual or there)[0]
    if not there:
        raise BadManifest(
            f"{shown} has neither a {MANIFEST} nor a script.",
            hint="Add a script, say solve.py, or a manifest that names a command; name a subfolder after `#`.",
        )
    raise BadManifest(
        f"{shown} has several scripts ({', '.join(there[:5])}) and no {MANIFEST}.",
        hint=f"Name one: `--agent {shown.rstrip('/')}/{there[0]}`; or rename it solve.py.",
    )


def siblings(script: Path) -> frozenset[str]:
    """What is copied with a script: requirements, Python files and packages beside it."""
    found = {script.name, _REQUIREMENTS}
    for path in script.parent.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            found.add(path.name)
    return frozenset(found)


def make_script(
    script: Path, version: str, reference: str, build: Callable[[list[str]], Build], *, remote: bool
) -> Agent:
    """The agent that runs a script.

    Args:
        script: In a copy of ours.
        version: Of its content.
        reference: What finds exactly this again.
        remote: Whether it was fetched from another machine.
        build: `build(requirements)` says how an image of it is built.

    Raises:
        MlereduxError: Its inline metadata is not valid.
    """
    requirements, python = _needed(script)
    folder = AgentFolder(path=script.parent, place=PLACE, python=requirements, requires_python=python)
    made = Agent(
        id=re.sub(r"[^A-Za-z0-9._-]+", "-", script.name).lstrip("._-") or "script",
        version=f"1 ({version[:12]})",
        title=f"The script {script.name}",
        command=_command(script.name, ""),
        build=build(list(requirements)).model_copy(update={"folder": folder}),
        env=_VARIABLES,
        options={"args": ""},
        isolated=True,
        unisolated="named" if remote else "first",
        verify=_command(script.name, ""),
        reference=reference,
        tags=("repo",),
    )

    def configured(options: dict[str, Any]) -> Agent:
        if not isinstance(options["args"], str):
            raise MlereduxError("The option args is not a text.", hint="Write `-o args='--data $MLEREDUX_DATA_DIR'`.")
        command = _command(script.name, options["args"])
        return made.model_copy(update={"command": command, "verify": command})

    return made.model_copy(update={"configure": configured})


def _command(name: str, arguments: str) -> tuple[str, ...]:
    """Start a script in the output folder; its code is kept there."""
    path = f'"$MLEREDUX_AGENT_DIR"/{shlex.quote(name)}'
    runner = {
        ".py": "python",
        ".sh": "sh",
        ".ipynb": f"python -c {shlex.quote(resources.files(__package__).joinpath('notebook.py').read_text('utf-8'))}",
    }[Path(name).suffix]
    return ("sh", "-c", f"mkdir -p code && cp {path} code/; exec {runner} {path} {arguments}".rstrip())


def _needed(script: Path) -> tuple[tuple[str, ...], str | None]:
    """Requirements and the version of Python: of inline metadata, else of requirements.txt."""
    if script.suffix == ".py":
        text = script.read_text(encoding="utf-8", errors="replace")
        if block := _BLOCK.search(text):
            lines = block["content"].splitlines(keepends=True)
            try:
                told = tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
                asked = told.get("dependencies", [])
                if not isinstance(asked, list) or not all(isinstance(one, str) and one[:1] != "-" for one in asked):
                    raise ValueError("dependencies is not a list of requirements")
            except ValueError as error:
                raise MlereduxError(
                    f"The inline metadata (PEP 723) of {script.name} is not valid: {error}.", hint="Fix it there."
                ) from None
            return tuple(asked), told.get("requires-python")
    return ((f"-r {_REQUIREMENTS}",) if (script.parent / _REQUIREMENTS).is_file() else ()), None
