"""Pack agents' local folders and scripts for upload, without ignored files."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mleredux.errors import file_errors

from mleredux_client.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LEFT_OUT = {".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_SCRIPTS = (".py", ".ipynb", ".sh")
_BEGINNINGS = ("./", "../", "~/", "/")
_REPO = "repo:"


@dataclass(frozen=True)
class LocalAgent:
    """An agent's local folder.

    Attributes:
        folder: The folder, or the folder of the script.
        script: The name of the script in it; None if a folder was given.
        part: A folder or script in it, given after `#`.
    """

    folder: Path
    script: str | None = None
    part: str | None = None

    @property
    def name(self) -> str:
        """The name of the agent."""
        return Path(self.script).stem if self.script else self.folder.name

    def reference(self, uploaded: str) -> str:
        """Return the reference of the agent in the uploaded folder."""
        part = self.script or self.part
        return f"{uploaded}#{part}" if part else uploaded


@dataclass(frozen=True)
class Package:
    """A packed folder.

    Attributes:
        archive: A gzip-compressed tar; a temporary file.
        digest: SHA-256 of the sorted lines `KIND HASH PATH`, by which a server identifies its content.
    """

    archive: Path
    digest: str


def find_local(agent: str | Path) -> LocalAgent | None:
    """Return the local agent if a path is given: `./folder`, `~/agents/x`, `../agent.py`, `repo:./folder#part`, or a
    `Path`.

    Raises:
        UsageError: The folder or script does not exist.
    """
    text = str(agent)
    named = text.removeprefix(_REPO)
    if not isinstance(agent, Path) and not named.startswith(_BEGINNINGS) and named not in (".", ".."):
        return None
    if text.startswith(f"{_REPO}/"):
        return None  # a path on the server, for the server's administrators
    place, mark, part = named.rpartition("#")
    if not mark or Path(named).expanduser().exists():
        place, part = named, ""
    path = Path(place).expanduser().resolve()
    if path.is_file() and (path.suffix in _SCRIPTS or path.read_bytes()[:2] == b"#!"):
        return LocalAgent(path.parent, path.name)
    if not path.is_dir():
        hint = "Specify the agent's folder, or the id of an agent."
        raise UsageError(f"There is no folder or script {place}.", hint=hint)
    return LocalAgent(path, part=part or None)


@contextmanager
def packed(local: LocalAgent) -> Iterator[Package]:
    """Pack a folder without ignored files; the same files give the same bytes.

    Raises:
        UsageError: A name can't be sent, or a file can't be read.
    """
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mleredux-upload-") as scratch:
        archive = Path(scratch) / "agent.tar.gz"
        with (
            archive.open("wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as zipped,
            tarfile.open(fileobj=zipped, mode="w|") as tar,
        ):
            for name in sorted(files_of(local)):
                followed = local.script is not None and "/" not in name
                with file_errors(UsageError, f"{name!r} can't be packed", "Add it to .gitignore."):
                    lines.append(_add(tar, local.folder / name, name, followed=followed))
        if not lines:
            raise UsageError(f"{local.folder} has only ignored files.", hint="See its .gitignore.")
        yield Package(archive, hashlib.sha256("".join(sorted(lines)).encode()).hexdigest())


def files_of(local: LocalAgent) -> Iterator[str]:
    """Yield the paths of the files and links that belong to an agent, relative to its folder."""
    only = None if local.script is None else _script_files(local.folder, local.script)
    docker, exceptions = _docker_rules(local.folder)
    yield from _walk(local.folder, "", [], docker, exceptions, only)


def _walk(
    root: Path,
    prefix: str,
    rules: list[tuple[str, GitIgnoreSpec]],
    docker: GitIgnoreSpec,
    exceptions: bool,
    only: frozenset[str] | None = None,
) -> Iterator[str]:
    here = root / prefix
    if (spec := _rules(here / ".gitignore")) is not None:
        rules = [*rules, (prefix, spec)]
    for entry in sorted(os.scandir(here), key=lambda item: item.name):
        name = prefix + entry.name
        if entry.name in _LEFT_OUT or (only is not None and entry.name not in only):
            continue
        if entry.is_dir(follow_symlinks=only is not None):  # a package that a script imports
            folder = f"{name}/"
            if not _ignored(folder, rules) and (exceptions or not docker.match_file(folder)):
                yield from _walk(root, folder, rules, docker, exceptions)
        elif not (_ignored(name, rules) or docker.match_file(name)) and (entry.is_file() or entry.is_symlink()):
            yield name


def _ignored(name: str, rules: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """Return whether a path is ignored; as in git, the innermost file with a matching rule decides."""
    for prefix, spec in reversed(rules):
        ignored = spec.check_file(name.removeprefix(prefix)).include
        if ignored is not None:
            return ignored
    return False


def _rules(path: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    if path.is_symlink() or not path.is_file():
        return None
    return GitIgnoreSpec.from_lines(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _docker_rules(folder: Path) -> tuple[GitIgnoreSpec, bool]:
    """Return the rules of `.dockerignore`, whose patterns are relative to the folder, and whether any of them are
    exceptions."""
    from pathspec import GitIgnoreSpec

    path, lines = folder / ".dockerignore", []
    if path.is_file() and not path.is_symlink():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            pattern = line.strip()
            if pattern and not pattern.startswith("#"):
                mark, rest = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
                lines.append(f"{mark}/{PurePosixPath(rest.strip().lstrip('/'))}")
    return GitIgnoreSpec.from_lines(lines), any(line.startswith("!") for line in lines)


def _script_files(folder: Path, script: str) -> frozenset[str]:
    """Return the files that a script imports or names; if mleredux-rollout is missing, all modules next to it."""
    try:
        from mleredux_rollout import find_beside
    except ImportError:
        modules = {path.name for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
        return frozenset({script, "requirements.txt", *modules})
    beside = find_beside(folder / script)
    for sentence in beside.remarks.values():
        warnings.warn(sentence, stacklevel=2)
    return beside.names


def _add(tar: tarfile.TarFile, path: Path, name: str, *, followed: bool) -> str:
    """Add a file, a link, or the target of a link; return its line for the digest."""
    info = tarfile.TarInfo(name)
    if path.is_symlink() and not followed:
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
        tar.addfile(info)
        return f"link {hashlib.sha256(info.linkname.encode()).hexdigest()} {name}\n"
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        program = bool(status.st_mode & 0o100)
        info.size, info.mode = status.st_size, 0o755 if program else 0o644
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        tar.addfile(info, file)
    return f"{'program' if program else 'file'} {digest} {name}\n"
