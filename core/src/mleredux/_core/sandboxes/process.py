"""The process sandbox: agents as processes on this machine.

Not a security boundary. The agent has a clean environment, its own process group and limits, but it runs as the same
user on the same file system, so it could read the answers. Use it only for agents you trust, and Docker for all others.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from mleredux._core.forkserver import INHERITED
from mleredux._core.plain import SOCKETS, plain_path
from mleredux._core.plugins.capabilities import Capabilities
from mleredux._core.plugins.discovery import installation, provided
from mleredux._core.protocols import BuildRequest, Built, Finding, Handle, Launch, Layout
from mleredux._core.sandboxes.launched import attach_launcher, start_launcher, sweep_launchers
from mleredux.errors import SandboxError
from mleredux.models import AgentFolder

_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")


class ProcessSandbox:
    """Runs agents with this interpreter's environment."""

    id = "process"
    title = "Processes on this machine; no isolation"
    capabilities = Capabilities(gpus=True)

    def check(self) -> list[Finding]:
        """Report no problems: the sandbox works on every POSIX system."""
        return [Finding("process sandbox", True, f"Agents run with {sys.executable}; there is no isolation.")]

    def build(self, request: BuildRequest) -> Built:
        """Return the identity of the interpreter and its packages; nothing is built."""
        if missing := [name for name in request.agent.build.packages if not _importable(name)]:
            raise SandboxError(
                f"Agent {request.agent.id} needs {', '.join(missing)}, which this environment lacks.",
                hint="Install the agent's package, or use a sandbox that builds one, such as docker.",
            )
        if (folder := request.agent.build.folder) is not None:
            request.log.touch()
            request.progress("finding the agent's packages")
            python, cached = _find_environment(folder, request)
            with request.log.open("a", encoding="utf-8") as log:
                log.write(f"The process sandbox uses {python}.\n")
            own = None if str(python) == sys.executable else python
            return Built(f"process:sha256:{_environment_digest(own)}", str(python), cached=cached)
        request.log.write_text(f"The process sandbox uses {sys.executable}; nothing was built.\n", encoding="utf-8")
        return Built(f"process:sha256:{_environment_digest()}", sys.executable, cached=True)

    def layout(self, launch: Launch) -> Layout:
        """Return the real folders, or links with plain names, because agents use paths in commands and put sockets in
        folders.
        """
        task = plain_path(launch.task_dir)
        return Layout(
            task=str(task),
            data=str(task / "data"),
            output=str(plain_path(launch.output_dir)),
            scratch=str(_scratch(launch)),
            validate_url=launch.validate_url,
            gateway_url=launch.gateway_url,
        )

    def start(self, launch: Launch) -> Handle:
        """Start the agent under a launcher that survives this program."""
        data = launch.task_dir / "data"
        if not data.is_symlink():
            data.rmdir()
            data.symlink_to(launch.data_dir.resolve(), target_is_directory=True)
        base = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        folder = Path(launch.built.reference).parent
        programs = plain_path(folder.parents[1]) / folder.parent.name / folder.name  # the interpreter, by a plain name
        base["PATH"] = os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"])
        base["PYTHONUNBUFFERED"] = "1"
        scratch = str(_scratch(launch))
        places = {"HOME": scratch, "TMPDIR": scratch, "PWD": str(plain_path(launch.output_dir))}
        environment = {**base, **places, **launch.env}
        command = _command(launch, environment)
        return _served_here(launch, command, environment, base) or start_launcher(launch, command, environment)

    def attach(self, launch: Launch) -> Handle | None:
        """Return the agent if its launcher is alive or has recorded how the agent ended."""
        return attach_launcher(launch)

    def sweep(self, owner: str, alive: Callable[[str], bool]) -> Iterable[str]:
        """End processes of this owner's runs that are no longer supervised."""
        return sweep_launchers(owner, alive)


def _find_environment(folder: AgentFolder, request: BuildRequest) -> tuple[Path, bool]:
    """Return an interpreter that meets the requirements of an agent's folder, and whether it existed already."""
    if not folder.python and not folder.requires_python:
        return Path(sys.executable), True
    environment: tuple[Path, bool] = provided("find_environment")(folder, request)
    return environment


def _served_here(
    launch: Launch, command: Sequence[str], environment: dict[str, str], base: dict[str, str]
) -> Handle | None:
    """Open a session in this program if the module that would serve it names another module for this, as `HOSTED`.

    Args:
        launch: The agent's launch.
        command: The command; only `python -m MODULE` can be served here.
        environment: All variables of the agent.
        base: Those that all agents have.
    """
    changed = any(name.startswith(INHERITED) and base.get(name) != value for name, value in environment.items())
    mine = launch.bound and launch.built.reference == sys.executable and sys.platform == "linux"
    if not mine or changed or tuple(command[:-1]) != ("python", "-m"):
        return None
    module = getattr(importlib.import_module(command[-1]), "HOSTED", None)
    return importlib.import_module(module).host(launch, environment, base) if module else None


def _scratch(launch: Launch) -> Path:
    return plain_path(launch.scratch_dir, SOCKETS)


def _command(launch: Launch, environment: dict[str, str]) -> list[str]:
    """Return the agent's command. Its own files are copied, so that it can't change the files that other runs start
    from."""
    folder = launch.agent.build.folder
    if folder is None:
        return list(launch.command)
    copy = _scratch(launch) / "agent"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder.path, copy, symlinks=True)
    place = re.compile(rf"(?<![\w./-]){re.escape(folder.place)}(?![\w.-])")
    for name, value in launch.env.items():
        environment[name] = place.sub(lambda _: str(copy), value)
    return [place.sub(lambda _: str(copy), word) for word in launch.command]


@cache
def _environment_digest(python: Path | None = None) -> str:
    """Return the identity of an environment and its packages; for None, that of this interpreter."""
    digest = hashlib.sha256(sys.version.encode())
    for name, version in _packages_of(python) if python else _own_packages():
        digest.update(f"{name}=={version}\n".encode())
    return digest.hexdigest()


def _packages_of(python: Path) -> list[tuple[str, str]]:
    """Return names and versions of the packages of an interpreter's environment."""
    folders = map(str, python.parent.parent.glob("lib/python*/site-packages"))
    return sorted({(item.name, item.version) for item in metadata.distributions(path=list(folders)) if item.name})


def _own_packages() -> list[tuple[str, str]]:
    """Return names and versions of this interpreter's packages; cached, as reading them takes longer than a run."""
    here = installation()
    packages = here.remembered("packages")
    if packages is None:
        packages = sorted({(item.name, item.version) for item in metadata.distributions() if item.name})
        here.remember("packages", packages)
    return [(name, version) for name, version in packages]


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


SANDBOX = ProcessSandbox()
