"""The imported agents: copies of folders by content, and names of the agents in them."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError, NotFound, file_fault
from mleredux.plugin import Scheme

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

_NAMES = "agents.json"
_LEFT_OUT = {".git", "__pycache__", ".DS_Store"}
_MOST_FILES = 20_000
_MOST_BYTES = 512 << 20
DEFAULT_LIBRARIES = "minimal"


def home() -> Path:
    """Return the folder `mleredux/mlebench-agents` in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "mleredux" / "mlebench-agents"


def imported() -> dict[str, dict[str, Any]]:
    """Return the names of imported agents, with the copy and the listed facts of each.

    Raises:
        MlereduxError: The file of names is damaged.
    """
    path = home() / _NAMES
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): {"copy": str(item["copy"]), "summary": dict(item["summary"])} for name, item in record.items()
        }
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise MlereduxError(
            f"{path} is damaged: {file_fault(error)}.", hint="Remove it, and import the agents again."
        ) from None


def register(agents: list[Agent], copy: str) -> list[str]:
    """Register the names of a copy's agents; return the names that referred to other agents before."""
    from mleredux.plugin.agent import summary_of

    known = imported()
    replaced = []
    for agent in agents:
        name = (agent.reference or agent.id).removeprefix("mlebench:").partition("@")[0]
        if name in known and known[name]["copy"] != copy:
            replaced.append(name)
        summary = {**summary_of("agents", agent), "id": f"mlebench:{name}"}
        known[name] = {"copy": copy, "summary": summary}
    _write(home() / _NAMES, json.dumps(dict(sorted(known.items())), indent=1))
    return replaced


def find(reference: str) -> Agent:
    """Return the agent of a reference: `mlebench:` and a name, `name@copy`, `folder#name`, or a folder with one agent.

    Raises:
        NotFound: There is no such agent.
        MlereduxError: The folder is not in MLE-bench's layout.
    """
    from mleredux_agent_mlebench_import.agents import load_agents

    wanted = reference.removeprefix("mlebench:")
    folder, hash_sign, name = wanted.rpartition("#")
    if hash_sign:
        return _agent_named(load_agents(keep(Path(folder).expanduser())), name, f"{folder}/config.yaml")
    name, at, copy = wanted.partition("@")
    if at:
        if not (home() / copy / "about.json").is_file() or "/" in copy:
            raise NotFound(f"There is no copy {copy!r} of agent {name} here.", hint="Import its original folder again.")
        return _agent_named(load_agents(copy), name, f"copy {copy}")
    names = imported()
    if wanted in names:
        return _agent_named(load_agents(names[wanted]["copy"]), wanted, "its copy")
    path = Path(wanted).expanduser()
    if path.is_dir():
        agents = load_agents(keep(path))
        if len(agents) == 1:
            return next(iter(agents.values()))
        raise NotFound(f"{wanted} has several agents.", hint=f"Name one: mlebench:{wanted}#{next(iter(agents))}.")
    listed = ", ".join(f"mlebench:{known}" for known in names) or "none so far"
    raise NotFound(
        f"There is no imported agent {wanted!r}.",
        hint=f"Imported agents: {listed}. `mleredux agent import-mlebench FOLDER` imports more.",
    )


def keep(folder: Path, libraries: str = DEFAULT_LIBRARIES, env_image: str | None = None) -> str:
    """Copy a folder of agents, with generated Dockerfiles; return the copy's name, which is derived from its content.

    Args:
        folder: A folder in MLE-bench's layout.
        libraries: Libraries in the environment `agent`, in the syntax of `mleredux_agents.libraries`.
        env_image: An existing image to use as `mlebench-env`.

    Raises:
        MlereduxError: The folder is not in MLE-bench's layout, too large, or the libraries are invalid.
    """
    from mleredux_agents import libraries as parse

    from mleredux_agent_mlebench_import.environment import dockerfile
    from mleredux_agent_mlebench_import.layout import read_folder

    try:
        wanted = parse(libraries)
    except ValueError as error:
        raise MlereduxError(f"These libraries are not available: {error}.") from None
    entries = read_folder(folder)
    about = {"libraries": libraries, "env_image": env_image}
    files = _files(folder)
    record = {
        generated_name(name): dockerfile((folder / name).read_text(encoding="utf-8"), wanted, env_image)
        for name in {entry.dockerfile for entry in entries.values()}
    }
    name = _digest(folder, files, json.dumps([about, sorted(record.items())]))
    target = home() / name
    if (target / "about.json").is_file():
        return name
    home().mkdir(parents=True, exist_ok=True)
    temporary = home() / f".{name}.{secrets.token_hex(4)}"
    for path in files:
        copy = temporary / "agent" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / path, copy, follow_symlinks=False)
    for generated, text in record.items():
        _write(temporary / "agent" / generated, text)
    _write(temporary / "about.json", json.dumps({**about, "source": str(folder.resolve())}, indent=1))
    shutil.rmtree(target, ignore_errors=True)
    temporary.replace(target)
    return name


def generated_name(dockerfile: str) -> str:
    """Return the path in the copy of a Dockerfile with the stage `mlebench-env`."""
    return f".mleredux.{dockerfile.replace('/', '_')}"


def _agent_named(agents: dict[str, Agent], name: str, where: str) -> Agent:
    if name not in agents:
        raise NotFound(f"There is no agent {name!r} in {where}.", hint=f"It has: {', '.join(agents)}.")
    return agents[name]


def _files(folder: Path) -> list[Path]:
    """Return files and links of a folder, relative to it; links must not point outside."""
    files: list[Path] = []
    size = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in [*links, *names]:
            path = Path(parent) / name
            if name in _LEFT_OUT:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                raise MlereduxError(f"{path} links outside the folder.", hint="Put the file itself there.")
            if path.is_symlink() or path.is_file():
                files.append(path.relative_to(folder))
                size += path.lstat().st_size
        if len(files) > _MOST_FILES or size > _MOST_BYTES:
            raise MlereduxError(
                f"{folder} contains more than {_MOST_FILES:,} files or {_MOST_BYTES >> 20} MB.",
                hint="Keep only the files that the image is built from.",
            )
    return sorted(files)


def _digest(folder: Path, files: list[Path], about: str) -> str:
    digest = hashlib.sha256(about.encode())
    for path in files:
        full = folder / path
        content = os.fsencode(full.readlink()) if full.is_symlink() else full.read_bytes()
        head = f"\0{path.as_posix()}\0{full.is_symlink()}{full.lstat().st_mode & 0o100}\0{len(content)}\0"
        digest.update(head.encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:16]


def _write(path: Path, text: str) -> None:
    from mleredux.plugin.files import write_atomically  # not for lists of agents, which it would slow down

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text + "\n")


SCHEME = Scheme(id="mlebench", title="Agents in MLE-bench's layout", find_agent=find)
