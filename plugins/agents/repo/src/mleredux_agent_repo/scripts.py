"""Agents without a manifest: a script, a notebook, or a folder with one of them."""

from __future__ import annotations

import contextlib
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.models import AgentFolder
from mleredux.plugin.agent import Agent, Build
from mleredux_rollout import notebook_runner

from mleredux_agent_repo.manifest import MANIFEST, BadManifest

SUFFIXES = (".py", ".ipynb", ".sh")
"""Suffixes of scripts that need no first line `#!…`."""
NOTEBOOK = ("nbclient", "ipykernel", "ipywidgets")
"""Packages that run notebooks, and Jupyter's widgets, which `tqdm.notebook` needs."""
PLACE = "/opt/agent"
_USUAL = ("main.py", "solve.py", "run.py", "agent.py", "train.py", "__main__.py", "solve.ipynb", "main.ipynb", "run.sh")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_SPLIT = re.compile(r"^(?:(-[iv]+)S|-S|--split-string[= ])")
_WITH_VALUE = ("-u", "--unset", "-C", "--chdir", "-P", "-a", "--argv0")
"""Options of `env` whose value is the next word."""
_REQUIREMENTS = "requirements.txt"
_BLOCK = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""The regular expression for inline metadata from PEP 723."""
_VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", "MLEREDUX_AGENT_DIR": PLACE}


def is_script(path: Path) -> bool:
    """Return whether a file can be run, according to its suffix or its first line."""
    return path.is_file() and (path.suffix in SUFFIXES or first_line(path) is not None)


def first_line(path: Path) -> tuple[list[str], list[str]] | None:
    """Read a script's first line as the kernel and `env -S` do.

    Source: GNU coreutils manual, "env invocation"; options need no `-S` before them here.

    Returns:
        The program and its arguments, and the arguments of `env` before it, such as `NAME=VALUE`; None if there is no
        program.
    """
    with path.open("rb") as file:
        line = file.readline(1000).decode("utf-8-sig", "replace")
    words = line[2:].split() if line.startswith("#!") else []
    if not words or Path(words[0]).name != "env":
        return (words, []) if words else None
    text = _SPLIT.sub(r"\1 ", line[2:].split(maxsplit=1)[-1], count=1) if words[1:] else ""
    with contextlib.suppress(ValueError):  # a quotation mark is missing
        words = ["env", *shlex.split(text.replace(r"\_", " "))]
    start = 1
    while start < len(words) and (words[start].startswith("-") or "=" in words[start]):
        start += 1 + (words[start] in _WITH_VALUE)
    return (words[start:], words[1:start]) if words[start:] else None


def find_script(folder: Path, shown: str) -> Path:
    """Return the script to run in a folder without a manifest.

    Raises:
        BadManifest: There is no script, or the choice is ambiguous.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    there = [path.name for path in files if path.suffix in SUFFIXES] or [path.name for path in files if is_script(path)]
    usual = [name for name in _USUAL if name in there]
    if usual or len(there) == 1:
        return folder / (usual or there)[0]
    if not there:
        raise BadManifest(
            f"{shown} has neither a {MANIFEST} nor a script.",
            hint="Add a script such as solve.py, or a manifest with a command; specify a subfolder after `#`.",
        )
    first = shlex.quote(f"{shown.rstrip('/')}/{there[0]}")
    raise BadManifest(
        f"{shown} has several scripts ({', '.join(there[:5])}) and no {MANIFEST}.",
        hint=f"Choose one: `--agent {first}`; or rename it to solve.py.",
    )


def make_script(
    script: Path, version: str, reference: str, build: Callable[[list[str]], Build], *, remote: bool
) -> Agent:
    """Return the agent that runs a script.

    Args:
        script: The script in our copy.
        version: The version of its content.
        reference: The reference of exactly this version.
        remote: Whether it was fetched from another machine.
        build: `build(requirements)` returns the build of its image.

    Raises:
        MlereduxError: The inline metadata is invalid, or shells can't read the script.
    """
    requirements, python = _needed(script)
    more = NOTEBOOK if script.suffix == ".ipynb" else ()
    installed = (*requirements, *more) if requirements else ()
    folder = AgentFolder(path=script.parent, place=PLACE, python=installed, requires_python=python)
    agent = Agent(
        id=re.sub(r"[^A-Za-z0-9._-]+", "-", script.name).lstrip("._-") or "script",
        version=f"1 ({version[:12]})",
        title=f"The script {script.name}",
        command=_command(script, ""),
        build=build([*requirements, *more]).model_copy(update={"folder": folder}),
        env=_VARIABLES,
        options={"args": ""},
        isolated=True,
        unisolated="named" if remote else "first",
        verify=_command(script, ""),
        reference=reference,
        tags=("repo",),
    )

    def configured(options: dict[str, Any]) -> Agent:
        if not isinstance(options["args"], str):
            raise MlereduxError("The option args is not a string.", hint="Write `-O args='--data $MLEREDUX_DATA_DIR'`.")
        command = _command(script, options["args"])
        return agent.model_copy(update={"command": command, "verify": command})

    return agent.model_copy(update={"configure": configured})


def _command(script: Path, arguments: str) -> tuple[str, ...]:
    """Return the command that starts a script in the output folder, where its code is stored.

    Raises:
        MlereduxError: The script has line endings that shells can't read.
    """
    path = f'"$MLEREDUX_AGENT_DIR"/{shlex.quote(script.name)}'
    programs, variables, options = _interpreters(script)
    if programs[-1] in _SHELLS:
        _refuse_unreadable(script)
    missing = f"{script.name} needs {programs[-1]}, which is not installed in its sandbox."
    start = (
        f'for run in {shlex.join(programs)}; do run=$(command -v "$run") && '
        f'exec {variables}"$run" {options} {path} {arguments}; done; echo {shlex.quote(missing)} >&2; exit 127'
    )
    return ("sh", "-c", f"mkdir -p code && cp {path} code/; {start}")


def _refuse_unreadable(script: Path) -> None:
    """Refuse a shell script with bytes that shells can't read.

    Raises:
        MlereduxError: It has Windows line endings, or a byte order mark.
    """
    content = script.read_bytes()
    for pattern, kind, command in (
        (rb"\r\n", "Windows line endings (CRLF)", r"s/\r$//"),
        (rb"\A\xEF\xBB\xBF", "a byte order mark", r"1s/^\xEF\xBB\xBF//"),
    ):
        if re.search(pattern, content):
            raise MlereduxError(
                f"{script.name} has {kind}, which shells can't read.",
                hint=f"Convert it: `sed -i '{command}' {script.name}`.",
            )


def _interpreters(script: Path) -> tuple[list[str], str, str]:
    """Return the programs that can run a script, preferred first, a prefix that sets variables, and their options.

    Python is always the environment's own, regardless of the first line.
    """
    if script.suffix == ".ipynb":
        return ["python"], "", shlex.join(["-c", notebook_runner()])
    [program, *options], variables = first_line(script) or (["python" if script.suffix == ".py" else "bash"], [])
    is_python = Path(program).name.startswith("python")
    programs = list(dict.fromkeys((program, Path(program).name)))
    if script.suffix == ".py" or is_python:
        programs, options = ["python"], options if is_python else []
    elif first_line(script) is None:
        programs = ["bash", "sh"]
    return programs, _quoted("env", *variables) + " " if variables else "", _quoted(*options)


def _quoted(*words: str) -> str:
    """Quote words for a shell, except for references to variables such as `${HOME}`, which `env -S` replaces."""
    return re.sub(r"\$\{(\w+)\}", r"""'"${\1}"'""", shlex.join(words))


def _needed(script: Path) -> tuple[tuple[str, ...], str | None]:
    """Return requirements and the Python version from inline metadata, else from requirements.txt."""
    if script.suffix == ".py":
        text = script.read_text(encoding="utf-8", errors="replace")
        if block := _BLOCK.search(text):
            lines = block["content"].splitlines(keepends=True)
            message = f"The inline metadata (PEP 723) of {script.name} is not valid"
            with file_errors(MlereduxError, message, "Fix it there.", ValueError):
                header = tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
                needs = header.get("dependencies", [])
                if not isinstance(needs, list) or not all(isinstance(need, str) and need[:1] != "-" for need in needs):
                    raise ValueError("dependencies is not a list of requirements")
            return tuple(needs), header.get("requires-python")
    return ((f"-r {_REQUIREMENTS}",) if (script.parent / _REQUIREMENTS).is_file() else ()), None
