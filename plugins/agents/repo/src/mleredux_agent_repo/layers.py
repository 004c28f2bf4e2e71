"""Generate Dockerfiles for agents without one: requirements first, the agent's files last.

Layers before the files are rebuilt only when the requirements change. The first layer installs wheels by name using the
base image's pip, before any file of the agent exists: only this layer uses the shared download cache.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

_HEAD = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER root
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
RUN python3 -m venv --system-site-packages /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
"""
_SHARED = (
    "python3 -m pip --python /opt/venv install --disable-pip-version-check --only-binary=:all:"
    ' "${MLEREDUX_PIP_CACHE:---no-cache-dir}" {names} || echo "The next step installs them."'
)
_INSTALL = "RUN python -m pip install --no-cache-dir --disable-pip-version-check {requirements}\n"
_PACKAGE = (
    "RUN python -m pip install --no-cache-dir --disable-pip-version-check --no-build-isolation {requirements}"
    " || python -m pip install --no-cache-dir --disable-pip-version-check {requirements}\n"
)
_FILES = """\
WORKDIR {place}
COPY . {place}
"""
_LISTED = "/opt/requirements"
_LOCAL = re.compile(r"(-e|--editable|-r|--requirement|-c|--constraint|-f|--find-links)\b|\.|/|\w:\\|file:")
"""Prefixes of requirement lines that refer to other files."""
_COMMENT = re.compile(r"(^|\s+)#.*")


def dockerfile(folder: Path, requirements: list[str], place: str) -> tuple[str, tuple[str, ...]]:
    """Return the Dockerfile of an agent's folder, and its steps that execute no code of the agent.

    Args:
        folder: The agent's files.
        requirements: Arguments of `pip install`: names, `-r FILE`, `.`, URLs.
        place: The path of the files in the image.
    """
    files = [item.split()[1] for item in requirements if item.startswith("-r ")]
    lines = {name: _lines(folder / name) for name in files}
    alone = [name for name in files if not any(_LOCAL.match(line) for line in lines[name])]
    packages = [item for item in requirements if item == "." or item.startswith(".[")]
    needed = [line for item in packages for line in _dependencies(folder, item)]
    early = [item for item in requirements if item not in packages and not _LOCAL.match(item)]
    late = [item for item in requirements if item not in early and item.removeprefix("-r ").strip() not in alone]
    simple = [name for name in alone if len(_plain(lines[name])) == len(set(lines[name]))]
    names = _plain([*early, *needed, *(line for name in simple for line in lines[name])])
    text, shared = _HEAD, _SHARED.replace("{names}", _quoted(names))
    if names:
        text += f"RUN {shared}\n"
    text += "".join(f"COPY {json.dumps([name, f'{_LISTED}/{number}.txt'])}\n" for number, name in enumerate(alone))
    early += [*_plain(needed), *(f"-r {_LISTED}/{number}.txt" for number in range(len(alone)))]
    if early:
        text += _INSTALL.format(requirements=_quoted(early))
    text += _FILES.format(place=place)
    if late:
        text += (_PACKAGE if packages else _INSTALL).format(requirements=_quoted(late))
    return text, (shared,) if names else ()


def _lines(path: Path) -> list[str]:
    """Return the lines of a requirements file, without comments and with continued lines joined."""
    text = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ") if path.is_file() else ""
    return [line for raw in text.splitlines() if (line := _COMMENT.sub("", raw).strip())]


def _plain(lines: Iterable[str]) -> list[str]:
    """Return the lines that name only a package of the index, without URL, option or hash."""
    names = dict[str, None]()
    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if wanted.url is None:
            names[str(wanted)] = None
    return list(names)


def _dependencies(folder: Path, item: str) -> list[str]:
    """Return the build and runtime requirements in the pyproject.toml of the agent's own package."""
    try:
        config: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        project, extras = config.get("project", {}), item[1:].strip("[]").split(",")
        optional = project.get("optional-dependencies", {})
        build = config.get("build-system", {}).get("requires", ["setuptools"])
        needs = [*build, *project.get("dependencies", ()), *(dep for name in extras for dep in optional.get(name, ()))]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []  # pip will report this
    return [dep for dep in needs if isinstance(dep, str)]


def _quoted(items: Iterable[str]) -> str:
    words = [word for item in items for word in (item.split() if item.startswith("-r ") else [item])]
    return " ".join(shlex.quote(word) for word in words)
