"""Import Harbor task directories: `mleredux run harbor:PATH` copies a directory into the cache, named by a hash."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound, file_errors
from mleredux.models import first_problem
from mleredux.plugin import Scheme
from mleredux.plugin.agent import Build
from mleredux.plugin.files import FileLock, cache_dir, remove_tree
from mleredux.plugin.task import Metric, Resources, Submission, Task
from pydantic import BaseModel, PositiveFloat, PositiveInt, ValidationError

from mleredux_bridge_harbor.reward import FILE, GRADER

SCHEME, PREFIX = "harbor:", "harbor."
_FOLDERS = ("environment", "tests", "solution")
_FILES = ("task.toml", "instruction.md")
_MOST_FILES, _MOST_BYTES = 20_000, 1 << 30
_FORMAT = b"2"
"""Incremented when the same directory must result in a different image."""
_WORKDIR = "/.harbor-workdir"
_LAYER = """
USER root
{workdir}RUN mkdir -p /logs/verifier /logs/agent /logs/artifacts /solution /tests \\
 && chmod -R a+rwX /logs /solution /tests && pwd > {file} && if [ "$(pwd)" != / ]; then chmod -R a+rwX .; fi
"""
"""Lines after a task's own Dockerfile: agents and verifiers are not root, so working directories are made writable."""


class _Part(BaseModel, strict=True, allow_inf_nan=False):
    """The parts of a task.toml that are used."""

    env: dict[str, str | int | float] = {}
    timeout_sec: PositiveFloat | None = None


class _Environment(_Part):
    cpus: PositiveFloat | None = None
    memory_mb: PositiveInt | None = None
    build_timeout_sec: PositiveFloat | None = None
    docker_image: str | None = None
    workdir: str | None = None


class _Verifier(_Part):
    environment: _Environment | None = None


class _Artifact(BaseModel, strict=True):
    source: str


class _Config(BaseModel, strict=True):
    task: dict[str, Any] = {}
    environment: _Environment = _Environment()
    agent: _Part = _Part()
    verifier: _Verifier = _Verifier()
    artifacts: list[str | _Artifact] = []


def import_folder(path: Path) -> str:
    """Copy a task directory into the cache, and return the id of its task.

    Raises:
        NotFound: The directory does not exist.
        MlereduxError: The directory is too large, has links, or requires unsupported features.
    """
    if not (path / "task.toml").is_file():
        raise NotFound(f"{path} is not a Harbor task directory.", hint="Choose a folder with a task.toml.")
    files = sorted(_files(path), key=str)
    digest = hashlib.sha256(_FORMAT)
    for file in files:
        content = (path / file).read_bytes()
        digest.update(f"{file}\0{len(content)}\0{os.access(path / file, os.X_OK)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    name = re.sub(r"[^a-z0-9]+", "-", path.resolve().name.lower()).strip("-")[:40] or "task"
    task = f"{PREFIX}{name}.{digest.hexdigest()[:12]}"
    home = folder_of(task)
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.with_name(f"{home.name}.lock")):
        if not home.is_dir():
            fresh = home.with_name(f".{home.name}")
            remove_tree(fresh) if fresh.exists() else None
            for file in files:
                (fresh / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path / file, fresh / file)
                (fresh / file).chmod(0o755 if os.access(path / file, os.X_OK) else 0o644)
            for kind in ("environment", "tests"):
                _write_recipe(fresh, kind)
            fresh.rename(home)
    read_task(task)
    return task


def read_task(name: str) -> Task:
    """Return the task of an imported directory.

    Raises:
        NotFound: The directory is not in the cache.
        MlereduxError: The directory requires unsupported features.
    """
    home = folder_of(name)
    if not home.is_dir():
        raise NotFound(f"The task {name} is not in the cache.", hint="Import it again: `mleredux run harbor:PATH`.")
    config = read_config(home)
    wanted, limit = config.get("environment", {}), config.get("agent", {}).get("timeout_sec")
    return Task(
        id=name,
        title=str(config.get("task", {}).get("description") or name),
        description=home / "described.md",
        prepare=prepare,
        fetch=lambda raw: None,
        submission=Submission(file=FILE, sample=None),
        answers="verifier.txt",
        metric=Metric(grader=GRADER),
        direction="maximize",
        environment=Build(
            image=None,
            context=home / "environment",
            dockerfile=".harbor.Dockerfile",
            time_limit=wanted.get("build_timeout_sec", 600),
        ),
        resources=Resources(
            cpus=wanted.get("cpus"),
            memory_mb=wanted.get("memory_mb"),
            time_limit=math.ceil(limit) if limit else None,
        ),
        category="Harbor",
        tags=("harbor",),
    )


def read_config(home: Path) -> dict[str, Any]:
    """Return the `task.toml` of an imported directory, checked for unsupported features.

    Raises:
        MlereduxError: The file is invalid, or requires unsupported features.
    """
    with file_errors(MlereduxError, "The task.toml can't be read", "Write valid TOML.", ValueError):
        config = tomllib.loads((home / "task.toml").read_text(encoding="utf-8"))
    try:
        _Config.model_validate(config)
    except ValidationError as error:
        problem = first_problem(error)
        raise MlereduxError(
            f"The task.toml has no valid {problem.place}: {problem.message}.",
            hint="Fix it according to Harbor's schema 1.4.",
        ) from None
    wanted, verifier = config.get("environment", {}), config.get("verifier", {})
    apart = verifier.get("environment") or {}
    refused = {
        "several steps": bool(config.get("steps")),
        "Docker Compose": any((home / "environment").glob("docker-compose.y*ml")),
        "a system other than Linux": wanted.get("os", "linux") != "linux",
        "GPUs or TPUs": bool(wanted.get("gpus") or wanted.get("tpu")),
        "MCP servers or skills": bool(wanted.get("mcp_servers") or wanted.get("skills_dir")),
        "a health check": bool(wanted.get("healthcheck")),
        "collecting hooks": bool(verifier.get("collect")),
        "variables of this machine": any(
            "${" in str(value) for part in (wanted, verifier, apart) for value in part.get("env", {}).values()
        ),
        "no tests/test.sh": not (home / "tests" / "test.sh").is_file(),
        "no instruction.md": not (home / "instruction.md").is_file(),
        "neither a Dockerfile nor docker_image": not wanted.get("docker_image")
        and not (home / "environment" / "Dockerfile").is_file(),
    }
    for what, names in refused.items():
        if names:
            raise MlereduxError(f"This Harbor task requires {what}.", hint="Run it with Harbor instead.")
    return config


def artifacts_of(config: dict[str, Any]) -> list[str]:
    """Return the paths in the agent's container that a separate verifier gets.

    Raises:
        MlereduxError: A path is not plain and absolute.
    """
    paths = [entry["source"] if isinstance(entry, dict) else entry for entry in config.get("artifacts", ())]
    for path in paths:
        if not re.fullmatch(r"/[\w./-]+", path) or ".." in path:
            raise MlereduxError(f"The artifact {path!r} is not a plain, absolute path.", hint="Fix the task.toml.")
    return [*paths, "/logs/artifacts"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Prepare no files: all data is in the image, and the verifier is never among the prepared files."""
    (public / "README.md").write_text("The files of this task are in the working directory.\n", encoding="utf-8")
    (private / "verifier.txt").write_text("The verifier is in the cache.\n", encoding="utf-8")


def folder_of(name: str) -> Path:
    """Return the folder of an imported task in the cache.

    Raises:
        NotFound: This is not the id of an imported task.
    """
    if not re.fullmatch(r"harbor\.[a-z0-9-]+\.[0-9a-f]{12}", name):
        raise NotFound(f"{name!r} is not the id of an imported task.", hint="Import it: `mleredux run harbor:PATH`.")
    return cache_dir() / "harbor" / name


def _files(path: Path) -> list[Path]:
    """Return the relative paths of a task directory's files.

    Raises:
        MlereduxError: There are links or devices, or too many or too large files.
    """
    paths = [Path(name) for name in _FILES if (path / name).is_file()]
    size = 0
    for top in _FOLDERS:
        for parent, folders, names in os.walk(path / top):
            for name in (*folders, *names):
                place = Path(parent) / name
                if place.is_symlink() or not (place.is_dir() or place.is_file()):
                    raise MlereduxError(
                        f"{place} is a link or a device.", hint="Replace it with a file, then import again."
                    )
            paths += [(Path(parent) / name).relative_to(path) for name in names]
            size += sum((Path(parent) / name).stat().st_size for name in names)
            if len(paths) > _MOST_FILES or size > _MOST_BYTES:
                raise MlereduxError(
                    f"{path} exceeds {_MOST_FILES:,} files or 1 GiB.", hint="Move large files into an image."
                )
    if any((path / name).is_symlink() for name in (*_FILES, *_FOLDERS)):
        raise MlereduxError(f"{path} contains links.", hint="Replace them with files, then import again.")
    return paths


def _write_recipe(home: Path, kind: str) -> None:
    """Write the Dockerfile of the environment or a separate verifier, with additions for agents that are not root."""
    config = read_config(home)
    wanted = config.get("environment", {})
    separate = config.get("verifier", {}).get("environment_mode") == "separate"
    if kind == "tests":
        if not separate:
            return
        wanted = config["verifier"].get("environment") or {}
    own = home / kind / "Dockerfile"
    image = wanted.get("docker_image")
    if image and not re.fullmatch(r"[\w./:@-]+", image):
        raise MlereduxError(f"The image {image!r} has an invalid name.", hint="Fix docker_image in the task.toml.")
    if not image and not own.is_file():
        raise MlereduxError("The separate verifier has neither a Dockerfile nor docker_image.", hint="Add one.")
    text = f"FROM {image}\n" if image else own.read_text("utf-8", "surrogateescape")
    place = wanted.get("workdir")
    if place and not re.fullmatch(r"/[\w./-]*", place):
        raise MlereduxError(f"The workdir {place!r} is not a plain path.", hint="Fix it in the task.toml.")
    layer = _LAYER.format(workdir=f"WORKDIR {place}\n" if place else "", file=_WORKDIR)
    if kind == "tests" and (places := {str(Path(artifact).parent) for artifact in artifacts_of(config)}):
        layer += f"RUN mkdir -p {' '.join(sorted(places))} && chmod a+rwX {' '.join(sorted(places))}\n"
    variables = "".join(f"ENV {key}={_quoted(value)}\n" for key, value in wanted.get("env", {}).items())
    (home / kind / ".harbor.Dockerfile").write_text(f"{text}\n{variables}{layer}", "utf-8", "surrogateescape")
    if kind == "environment":
        instruction = (home / "instruction.md").read_text("utf-8", "replace")
        (home / "described.md").write_text(_PREAMBLE + instruction, encoding="utf-8")


def _quoted(value: object) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", " ")
    return f'"{escaped}"'


_PREAMBLE = """\
Work in the directory whose path is in the file `/.harbor-workdir`. Its contents are verified when you finish,
and `reward.json` is written.

"""


def import_reference(reference: str) -> str:
    """Copy the task directory of `harbor:PATH` into the cache, and return the task's id."""
    return import_folder(Path(reference.removeprefix(SCHEME)).expanduser())


TASKS = Scheme(id="harbor", title="Task directories of Harbor", import_task=import_reference)
