"""Python environments of agents that run as processes: the current one if it meets the requirements, else a new one."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from mleredux.errors import BuildFailed, machine_fault
from mleredux.models import AgentFolder
from mleredux.models.formats import plain
from mleredux.plugin.files import FileLock, cache_dir, plain_path
from mleredux.plugin.sandbox import BuildRequest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

_FOLDER = "environments"


def find_environment(folder: AgentFolder, request: BuildRequest) -> tuple[Path, bool]:
    """Return an interpreter that meets an agent's requirements, and whether it existed already.

    The process sandbox calls it, as the entry point `find_environment` of the group `mleredux.api`.

    Args:
        folder: The agent's folder, which has requirements.
        request: The request for the build; its log receives the output of the installation.

    Raises:
        BuildFailed: The requirements can't be installed.
        Cancelled: The user stopped it.
    """
    if _at_hand(folder):
        return Path(sys.executable), True
    listed = "\n".join((folder.requires_python or "", *_lines(folder)))
    place = cache_dir() / _FOLDER / hashlib.sha256(f"{_identity(folder)}\n{listed}".encode()).hexdigest()[:32]
    python = place / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        if (place / "complete").is_file():
            (place / "complete").touch()
            return python, True
        shutil.rmtree(place, ignore_errors=True)
        plain = plain_path(place.parent) / place.name  # venv rejects colons, and shebang lines do not allow spaces
        end = time.monotonic() + request.time_limit
        for command in _commands(folder, plain, plain / "bin" / "python"):
            if _execute(command, folder.path, request, end):
                raise _failed(request.log)
        (place / "complete").touch()
    return python, False


def _execute(command: list[str], folder: Path, request: BuildRequest, end: float) -> int:
    """Run an installation command and return its exit code."""
    with (
        request.log.open("ab") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True) as process,
    ):
        try:
            while process.poll() is None:
                request.check_cancelled()
                if time.monotonic() > end:
                    raise BuildFailed(f"Installing the requirements took longer than {plain(request.time_limit)} s.")
                time.sleep(0.05)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode


def _failed(log: Path) -> BuildFailed:
    lines = [line.strip(" ×╰─▶│") for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    cause = next((line for line in reversed(lines) if line and not line.lower().startswith(("hint", "note"))), "")
    failed = BuildFailed(
        f"The script's requirements can't be installed: {cause[:300].rstrip('.')}.",
        hint="Fix them, or install them into this environment; logs/build.log has the full output.",
    )
    failed.by_agent = machine_fault(BuildFailed("\n".join(lines[-20:]))) is None
    return failed


def _commands(folder: AgentFolder, place: Path, python: Path) -> Iterator[list[str]]:
    wanted = [word for item in folder.python for word in (item.split() if item.startswith("-r ") else [item])]
    if uv := shutil.which("uv"):
        version = ["--python", folder.requires_python or sys.executable]
        yield [uv, "venv", "--quiet", *version, str(place)]
        yield [uv, "pip", "install", "--python", str(python), *wanted]
        return
    if folder.requires_python and not _fits(platform.python_version(), folder.requires_python):
        raise BuildFailed(
            f"The script requires Python {folder.requires_python}; this is {platform.python_version()}.",
            hint="Install uv, which fetches other versions: `pip install uv`.",
            by_agent=True,
        )
    yield [sys.executable, "-m", "venv", str(place)]
    yield [str(python), "-m", "pip", "install", "--disable-pip-version-check", *wanted]


def _at_hand(folder: AgentFolder) -> bool:
    """Return whether this environment meets the requirements; those that can't be checked (URLs, the folder) count as
    unmet."""
    try:
        return _fits(platform.python_version(), folder.requires_python or "") and all(map(_is_met, _lines(folder)))
    except (InvalidRequirement, InvalidSpecifier):
        return False


def _fits(version: str, specifier: str) -> bool:
    return SpecifierSet(specifier).contains(version, prereleases=True)


def _is_met(line: str) -> bool:
    wanted = Requirement(line)
    if wanted.marker is not None and not wanted.marker.evaluate():
        return True
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return False
    return wanted.url is None and not wanted.extras and wanted.specifier.contains(version, prereleases=True)


def _lines(folder: AgentFolder) -> list[str]:
    """Return the individual requirements, including those of files, without comments."""
    needs: list[str] = []
    for item in folder.python:
        lines: Iterable[str] = [item]
        if item.startswith("-r "):
            lines = (folder.path / item.split()[1]).read_text(encoding="utf-8", errors="replace").splitlines()
        needs += [line for line in (line.partition(" #")[0].strip() for line in lines) if line and line[0] != "#"]
    return needs


def _identity(folder: AgentFolder) -> str:
    """Return the other inputs of an environment besides requirements: the interpreter, and the folder if it is
    installed.
    """
    own = any(line.startswith((".", "-", "/")) for line in _lines(folder))
    return f"{sys.version}\n{folder.path if own else ''}"
