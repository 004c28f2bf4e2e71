"""Fetch an agent's source into the cache atomically: a commit of a repository, or a copy of a folder.

None of its code is run, and no git command runs in another user's folder: the objects of a repository on this machine
are first copied into our own repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import GIT_TOKEN, provided_secrets
from mleredux.plugin.files import FileLock, cache_dir
from mleredux_rollout import LEFT_OUT, find_beside

from mleredux_agent_repo import git, trees
from mleredux_agent_repo.local import Local, find_local
from mleredux_agent_repo.manifest import MANIFEST
from mleredux_agent_repo.references import Reference, is_allowed
from mleredux_agent_repo.scripts import is_script
from mleredux_agent_repo.submodules import add_submodules, refuse_missing

_COMMIT = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_COPY = re.compile(r"^copy-[0-9a-f]{40}$")
_FOLDER = "agents-2"
"""Folder in the cache; renamed when the rules for its content become stricter."""


@dataclass(frozen=True)
class Source:
    """An agent's source on this machine.

    Attributes:
        commit: The commit, or `copy-<hash>` of a folder that is not a commit.
        root: The whole repository or folder at that commit.
        folder: The agent's folder in it.
        remote: Whether it was fetched from another machine.
        script: The script of the reference, in this folder; None if it refers to a folder.
        reference: The reference of exactly this version.
        remarks: Messages to the user.
    """

    commit: str
    root: Path
    folder: Path
    reference: str
    script: Path | None = None
    remote: bool = False
    remarks: tuple[str, ...] = ()


def get(wanted: Reference) -> Source:
    """Fetch the source of a reference, or find it in the cache.

    Raises:
        MlereduxError: The source can't be fetched, is too large, or contains links that point outside.
    """
    commit = wanted.ref if wanted.ref and (_COMMIT.match(wanted.ref) or _COPY.match(wanted.ref)) else None
    remarks: list[str] = []
    if commit is None or not _place(wanted, commit).is_dir():
        commit = _find(wanted, commit, remarks)
    root = _place(wanted, commit)
    folder = (root / wanted.subdir).resolve()
    named = wanted.path.name if wanted.path is not None and (wanted.path.is_file() or not wanted.path.exists()) else ""
    script = folder / named if folder.is_dir() else folder
    if is_script(script) and script.resolve().is_relative_to(root.resolve()):
        inside = root / script.resolve().relative_to(root.resolve())
        trees.refuse_pointers(inside.parent)
        return Source(commit, root, inside.parent, wanted.pinned(commit), inside, wanted.path is None, tuple(remarks))
    if not folder.is_relative_to(root.resolve()) or not folder.is_dir():
        raise MlereduxError(
            f"There is no folder or script {wanted.subdir} in {wanted.place} at {commit[:12]}.",
            hint="Correct the part after `#`.",
        )
    own = root / folder.relative_to(root.resolve())
    trees.refuse_pointers(own)
    return Source(commit, root, own, wanted.pinned(commit), remote=wanted.path is None, remarks=tuple(remarks))


def _place(wanted: Reference, commit: str) -> Path:
    # Other users must fetch sources that require a token themselves.
    token = provided_secrets().get(GIT_TOKEN, "") if wanted.path is None else ""
    where = hashlib.sha256(os.fsencode("\0".join([wanted.place, *filter(None, [token])]))).hexdigest()[:12]
    return cache_dir() / _FOLDER / f"{commit}-{where}"


def _find(wanted: Reference, commit: str | None, remarks: list[str]) -> str:
    """Add a missing source to the cache; return its commit, or the name of a copy. Append messages to `remarks`."""
    if wanted.path is None:
        return _fetch(wanted, commit)
    if wanted.ref is not None and _COPY.match(wanted.ref):
        raise MlereduxError(
            f"The copy {wanted.ref} of {wanted.path} is no longer in the cache.", hint="Start a new run."
        )
    local = None if wanted.path.is_file() else find_local(wanted.path)
    if local is None or (wanted.ref is None and local.head is None and not local.bare):
        if wanted.ref is None:
            return _copy(wanted, remarks)
        raise MlereduxError(
            f"{wanted.path} is not a git repository with files, so there is no {wanted.ref}.",
            hint="Leave out the part after `@`, or specify the repository itself.",
        )
    if wanted.ref is None and not local.bare and (wanted.path / ".gitmodules").exists():
        return _copy(wanted, remarks)  # objects of submodules are not in the repository
    commit_id = _fetch(wanted, commit, local)
    if wanted.ref is None and not local.bare and _changed(wanted, local, commit_id):
        return _copy(wanted, remarks)
    return commit_id


@contextmanager
def scratch_of(origin: str) -> Iterator[Path]:
    """Yield a temporary folder in the cache, and lock the source against concurrent fetches."""
    cache = cache_dir() / _FOLDER
    cache.mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache / f".lock-{hashlib.sha256(os.fsencode(origin)).hexdigest()[:12]}")
    with lock, tempfile.TemporaryDirectory(prefix=".fetching-", dir=cache) as scratch:
        yield Path(scratch)


def _fetch(wanted: Reference, commit: str | None, local: Local | None = None) -> str:
    """Add one commit to the cache; return its hash."""
    shown, ref = wanted.place, commit or wanted.ref or "HEAD"
    if local is not None:
        known = local.commit(ref)
        if known is not None and _place(wanted, known).is_dir():
            return known
    with scratch_of(shown) as scratch:
        store = git.new_store(scratch / "store.git", sha256=local.sha256 if local else False)
        origin = str(local.stage(scratch / "origin.git")) if local else shown
        fetched = git.fetch(store, origin, ref, shown=shown)
        if commit is not None and fetched != commit:
            raise MlereduxError(f"{shown} returned commit {fetched[:12]} instead of {commit[:12]}.")
        place = _place(wanted, fetched)
        if not place.is_dir():
            trees.check_listed(git.run(["ls-tree", "-r", "-l", "-z", fetched], store), shown)
            tree = scratch / "tree"
            tree.mkdir()
            git.run(["checkout", "--quiet", "--force", fetched], store, tree=tree)
            add_submodules(store, fetched, tree, wanted.url, scratch)
            trees.check(tree, shown)
            tree.rename(place)
        return fetched


def _changed(wanted: Reference, local: Local, commit: str) -> bool:
    """Return whether a work tree differs from its commit."""
    tree = _place(wanted, commit)

    def ignored(names: list[str]) -> set[str]:
        with scratch_of(f"{wanted.place}\0ignored") as scratch:
            store = git.new_store(scratch / "store.git", sha256=local.sha256)
            listed = b"".join(os.fsencode(name) + b"\0" for name in names)
            ignored_names = git.run(["check-ignore", "--no-index", "-z", "--stdin"], store, tree=tree, stdin=listed)
            return {os.fsdecode(name) for name in ignored_names.split(b"\0") if name}

    assert wanted.path is not None
    return trees.differs(wanted.path, tree, ignored)


def _copy(wanted: Reference, remarks: list[str]) -> str:
    """Copy a folder, or a script with its files, into the cache; return a name derived from the content."""
    path = wanted.path
    assert path is not None
    folder, only, out = path, None, dict[str, Path | None]()
    if path.is_file():
        folder, beside = path.parent, find_beside(path)
        only, links = beside.names, {item.name for item in folder.iterdir() if item.is_symlink()}
        out = trees.outside_links(folder, str(folder), only | links)
        remarks += [sentence for name, sentence in beside.remarks.items() if name not in out]
    elif not os.path.lexists(path / MANIFEST):
        out = trees.outside_links(folder, str(folder))
    for name, target in out.items():
        needed = only is None or name.partition("/")[0] in only
        if target is None or not needed or not is_allowed(target):
            out[name] = None
            outside = f"outside {folder}, to a file that is not an imported program"
            target_of = outside if (folder / name).exists() else "to a file that does not exist"
            remarks.append(f"{name} is skipped: it links {target_of}.")
    with scratch_of(str(path)) as scratch:
        tree = scratch / "tree"
        trees.copy(folder, tree, str(folder), LEFT_OUT, only=only, followed=out)
        trees.check(tree, str(path))
        refuse_missing(folder, tree, git.new_store(scratch / "store.git"))
        commit = f"copy-{trees.digest(tree)[:40]}"
        place = _place(wanted, commit)
        if not place.is_dir():
            tree.rename(place)
    return commit
