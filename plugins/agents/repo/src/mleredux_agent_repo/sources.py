"""Getting an agent's source: a commit of a repository, or a copy of a folder, in the cache, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.files import FileLock, cache_dir

from mleredux_agent_repo.references import Reference

FETCH_SECONDS = 300.0
MAX_BYTES = 500 << 20
MAX_FILES = 20_000
MAX_LENGTH = 1024
_COMMIT = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_COPY = re.compile(r"^copy-[0-9a-f]{40}$")
_LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"})
_GIT = (
    *("git", "-c", "protocol.ext.allow=never", "-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"),
    *("-c", "submodule.recurse=false", "-c", "core.fsmonitor=false", "-c", "http.followRedirects=initial"),
    *("-c", "advice.detachedHead=false", "-c", "safe.directory=*", "-c", "gc.auto=0"),
)


@dataclass(frozen=True)
class Source:
    """An agent's source on this machine.

    Attributes:
        commit: The commit, or `copy-<hash>` of a folder that is not a commit.
        root: All of the repository (or folder) at that commit.
        folder: The agent's folder in it.
        reference: What finds exactly this again.
    """

    commit: str
    root: Path
    folder: Path
    reference: str


def get(wanted: Reference) -> Source:
    """Fetch what a reference means, or find it in the cache.

    Raises:
        MlereduxError: It can't be fetched, is too large, or holds links that lead out of it.
    """
    commit = wanted.ref if wanted.ref and (_COMMIT.match(wanted.ref) or _COPY.match(wanted.ref)) else None
    if commit is None or not _place(wanted, commit).is_dir():
        commit = _copy(wanted) if _is_plain(wanted) else _fetch(wanted, commit)
    root = _place(wanted, commit)
    folder = root / wanted.subdir
    if not folder.is_dir():
        raise MlereduxError(
            f"There is no folder {wanted.subdir} in {wanted.place} at {commit[:12]}.", hint="Fix the part after `#`."
        )
    return Source(commit, root, folder, wanted.pinned(commit))


def _place(wanted: Reference, commit: str) -> Path:
    where = hashlib.sha256(wanted.place.encode()).hexdigest()[:12]
    return cache_dir() / "agents" / f"{commit}-{where}"


def _is_plain(wanted: Reference) -> bool:
    """Whether it is a folder as it lies there: no repository, or one with changes, and no ref asked for."""
    if wanted.path is None or (wanted.ref is not None and not _COPY.match(wanted.ref)):
        return False
    if wanted.ref is not None:
        raise MlereduxError(
            f"The copy {wanted.ref} of {wanted.path} is not in the cache any more.", hint="Start a new run."
        )
    at = ["-C", str(wanted.path), "rev-parse"]
    bare = _git([*at, "--is-bare-repository"], ok=(0, 128))
    if bare is None or bare.strip() == "true":
        return bare is None
    top = _git([*at, "--show-toplevel"]) or ""
    if Path(top.strip()).resolve() != wanted.path:
        return True  # a folder of a repository that is about something else
    changed = _git(["-C", str(wanted.path), "status", "--porcelain", "--untracked-files=normal"], ok=(0, 128))
    return bool(changed)


def _fetch(wanted: Reference, commit: str | None) -> str:
    """Bring one commit into the cache; its name."""
    origin = wanted.place
    cache = cache_dir() / "agents"
    cache.mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache / f".lock-{hashlib.sha256(origin.encode()).hexdigest()[:12]}")
    with lock, tempfile.TemporaryDirectory(prefix=".fetching-", dir=cache) as scratch:
        store = Path(scratch) / "store.git"
        _git(["init", "--quiet", "--bare", str(store)])
        asked = commit or wanted.ref or "HEAD"
        _git(
            ["-C", str(store), "fetch", "--quiet", "--depth=1", "--no-tags", "--", origin, asked],
            watch=store,
            failure=f"{asked} of {origin} can't be fetched",
        )
        found = (_git(["-C", str(store), "rev-parse", "FETCH_HEAD^{commit}"]) or "").strip()
        if commit is not None and found != commit:
            raise MlereduxError(f"{origin} gave commit {found[:12]} where {commit[:12]} was asked for.")
        place = _place(wanted, found)
        if not place.is_dir():
            _check_listed(_git(["-C", str(store), "ls-tree", "-r", "-l", "-z", found]) or "", origin)
            tree = Path(scratch) / "tree"
            tree.mkdir()
            # No global configuration: filters (LFS) of the user's would run programs here.
            _git(["-C", str(store), "--work-tree", str(tree), "checkout", "--quiet", "-f", found], plain=True)
            _check_tree(tree, origin)
            tree.rename(place)
        return found


def _copy(wanted: Reference) -> str:
    """Copy a folder into the cache; a name made of its content."""
    path = wanted.path
    assert path is not None
    cache = cache_dir() / "agents"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".copying-", dir=cache) as scratch:
        tree = Path(scratch) / "tree"
        _check_tree(path, str(path))
        shutil.copytree(path, tree, symlinks=True, ignore=lambda _folder, names: _LEFT_OUT & set(names))
        commit = f"copy-{_digest(tree)[:40]}"
        place = _place(wanted, commit)
        if not place.is_dir():
            tree.rename(place)
    return commit


def _digest(tree: Path) -> str:
    digest = hashlib.sha256()
    for parent, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            digest.update(os.fsencode(path.relative_to(tree)) + b"\0")
            if path.is_symlink():
                digest.update(b"link" + os.fsencode(path.readlink()))
                continue
            digest.update(b"program" if path.stat().st_mode & 0o100 else b"file")
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _check_listed(listing: str, origin: str) -> None:
    """Refuse what is too much before it is written out."""
    rows = [row.partition("\t")[0].split() for row in listing.split("\0") if row]
    _refuse_too_much(origin, len(rows), sum(int(row[3]) for row in rows if row[3].isdigit()))


def _check_tree(tree: Path, origin: str) -> None:
    """Refuse links that lead out, things that are no files, and too much of it."""
    files = size = 0
    for parent, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in (*folders, *names):
            path = Path(parent) / name
            status = path.lstat()
            shown = path.relative_to(tree)
            if stat.S_ISLNK(status.st_mode):
                if not path.resolve().is_relative_to(tree.resolve()):
                    raise MlereduxError(f"{shown} in {origin} is a link that leads out of it.", hint="Remove it.")
            elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise MlereduxError(f"{shown} in {origin} is neither file nor folder.", hint="Remove it.")
            if len(str(shown)) > MAX_LENGTH:
                raise MlereduxError(f"{origin} holds paths of more than {MAX_LENGTH} characters.", hint="Shorten them.")
        files += len(names)
        size += sum((Path(parent) / name).lstat().st_size for name in names)
        _refuse_too_much(origin, files, size)


def _refuse_too_much(origin: str, files: int, size: int) -> None:
    if files > MAX_FILES or size > MAX_BYTES:
        raise MlereduxError(
            f"{origin} is too large for an agent: more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MB.",
            hint="Name a smaller repository; the agent's build loads models and data.",
        )


def _git(
    arguments: list[str],
    *,
    ok: tuple[int, ...] = (0,),
    watch: Path | None = None,
    failure: str | None = None,
    plain: bool = False,
) -> str | None:
    """Run git without questions, hooks and submodules; what it prints, or None where it ended otherwise than with 0."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_ASKPASS": "true"}
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    if plain:
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        process = subprocess.Popen(
            [*_GIT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise MlereduxError("git is not installed.", hint="Install it to build agents from repositories.") from error
    end = time.monotonic() + FETCH_SECONDS
    while True:
        try:
            out, err = process.communicate(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            problem = None
            if time.monotonic() > end:
                problem = f"took longer than {FETCH_SECONDS:.0f} seconds"
            elif watch is not None and _size(watch) > MAX_BYTES:
                problem = f"is larger than {MAX_BYTES >> 20} MB"
            if problem:
                process.kill()
                process.communicate()
                raise MlereduxError(f"{failure or 'git'}: it {problem}.", hint="Name a smaller repository.") from None
    if process.returncode == 0:
        return out.decode("utf-8", "replace")
    if process.returncode in ok:
        return None
    said = err.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
    raise MlereduxError(
        f"{failure or 'git failed'}: {said[-1].removeprefix('fatal: ')}",
        hint="Check the address, and the ref after `@`.",
    )


def _size(folder: Path) -> int:
    total = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:
                continue  # git renames its files when they are whole
    return total
