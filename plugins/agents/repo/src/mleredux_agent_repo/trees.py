"""Copy, compare and check untrusted folders, which are read by descriptor and never through a link."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux_rollout import LEFT_OUT

MAX_FILES = 20_000
MAX_BYTES = 500 << 20
MAX_LENGTH = 1024
PROGRAMS = (".py", ".ipynb", ".sh")
_OF_RUNS, _OF_RUN = {"index.sqlite", ".slots.lock"}, {"events.jsonl", "run.json"}
"""Files that identify a folder of runs, and one of a run; copies omit such folders, too."""
_BESIDE_RUNS = {*_OF_RUNS, ".slots.json", "index.sqlite-shm", "index.sqlite-wal"}
_DEPTH = 100
_POINTER, _POINTER_BYTES = b"version https://git-lfs.github.com/spec/v1\n", 1024
"""The prefix of a Git LFS pointer file, and its maximum size."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Entry:
    """A link or file of a folder, while it is open.

    Attributes:
        name: Its path in the folder.
        link: The target of the link; None for a file.
        handle: The open file; -1 for a link.
        program: Whether it is executable.
        size: Its size in bytes.
    """

    def __init__(self, name: str, link: str | None = None, handle: int = -1) -> None:
        self.name, self.link, self.handle = name, link, handle
        status = os.fstat(handle) if link is None else None
        self.program, self.size = (bool(status.st_mode & 0o100), status.st_size) if status else (False, 0)

    def digest(self) -> bytes:
        """Return a hash of its content and kind."""
        if self.link is not None:
            return hashlib.sha256(b"link" + os.fsencode(self.link)).digest()
        hasher = hashlib.sha256(b"program" if self.program else b"file")
        while block := os.read(self.handle, 1 << 20):
            hasher.update(block)
        return hasher.digest()


def entries(
    folder: Path, shown: str, left_out: frozenset[str] = frozenset(), only: frozenset[str] | None = None
) -> Iterator[Entry]:
    """Yield all files and links under a folder, sorted; folders are opened relative to their parents without following
    links.

    Args:
        only: Names in the folder itself to include; None for all.

    Raises:
        MlereduxError: An entry is not a file, folder or link, or there are too many files, or a file is too large.
    """
    root = os.open(folder, _FLAGS | os.O_DIRECTORY)
    try:
        yield from _entries(root, "", shown, left_out, _DEPTH, only)
    finally:
        os.close(root)


def _entries(
    parent: int, prefix: str, shown: str, left_out: frozenset[str], depth: int, only: frozenset[str] | None = None
) -> Iterator[Entry]:
    if not depth:
        raise MlereduxError(f"{shown} has folders nested more than {_DEPTH} levels deep.", hint="Remove some.")
    names = set(os.listdir(parent)) - left_out
    if left_out and names >= _OF_RUNS:
        names -= _BESIDE_RUNS
    for base in sorted(names if only is None else names & only):
        name = prefix + base
        if len(name) > MAX_LENGTH:
            raise MlereduxError(f"{shown} contains paths of more than {MAX_LENGTH} characters.", hint="Shorten them.")
        mode = os.stat(base, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            yield Entry(name, os.readlink(base, dir_fd=parent))
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise MlereduxError(f"{name} in {shown} is neither a file nor a folder.", hint="Remove it.")
        handle = os.open(base, _FLAGS, dir_fd=parent)
        try:
            mode = os.fstat(handle).st_mode  # it may have been replaced in the meantime
            if stat.S_ISREG(mode):
                yield Entry(name, handle=handle)
            elif stat.S_ISDIR(mode) and not (left_out and _is_ours(handle)):
                yield from _entries(handle, f"{name}/", shown, left_out, depth - 1)
        finally:
            os.close(handle)


def _is_ours(folder: int) -> bool:
    """Return whether an open folder contains runs, a run, or a task's data.

    With these, an agent would have the answers, and would be a different agent after each run.
    """
    has_data = any(os.access(name, os.F_OK, dir_fd=folder) for name in (".raw-lock", "prepared/private"))
    names = set(os.listdir(folder))
    return has_data or names >= _OF_RUNS or names >= _OF_RUN


def copy(
    folder: Path,
    target: Path,
    shown: str,
    left_out: frozenset[str] = frozenset(),
    *,
    only: frozenset[str] | None = None,
    followed: Mapping[str, Path | None] = {},
    files: int = 0,
    size: int = 0,
) -> None:
    """Copy a folder's files and links; `check` later refuses links that point outside.

    Args:
        only: Names in the folder itself to include; None for all.
        followed: Links, and the program or package to copy instead of each; None to copy nothing.
        files, size: Maximum number and total size in bytes; 0 for the limits of agents.
    """
    count = written = 0
    target.mkdir()
    for entry in entries(folder, shown, left_out, only):
        place = target / entry.name
        count += 1
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.link is not None and entry.name in followed:
            program = followed[entry.name]
            if program is not None and program.is_dir():
                copy(program, place, shown, left_out, files=files, size=size)
            elif program is not None:
                written += program.stat().st_size
                _refuse_too_much(shown, count, written, files, size)
                shutil.copyfile(program, place)
            continue
        if entry.link is not None:
            place.symlink_to(entry.link)
            continue
        with place.open("xb") as file:
            while block := os.read(entry.handle, 1 << 20):
                written += len(block)
                _refuse_too_much(shown, count, written, files, size)
                file.write(block)
        place.chmod(0o755 if entry.program else 0o644)
        _refuse_too_much(shown, count, written, files, size)


def outside_links(folder: Path, shown: str, only: frozenset[str] | None = None) -> dict[str, Path | None]:
    """Return links of a user's folder that point outside or nowhere, with the program or package to which each points.

    Args:
        only: Names in the folder itself to include; None for all.
    """
    targets: dict[str, Path | None] = {}
    root = folder.resolve()
    for entry in entries(folder, shown, LEFT_OUT, only):
        target = Path(os.path.realpath(folder / entry.name)) if entry.link is not None else root
        if not target.exists() or not target.is_relative_to(root):
            program = (target.is_file() and target.suffix in PROGRAMS) or (target / "__init__.py").is_file()
            targets[entry.name] = target if program else None
    return targets


def check(tree: Path, shown: str) -> None:
    """Refuse a tree that has links pointing outside, special files, or is too large; no one else may change the tree.

    Raises:
        MlereduxError: The tree is not allowed.
    """
    size = 0
    root = tree.resolve()
    for files, entry in enumerate(entries(tree, shown), 1):
        if entry.link is not None:
            try:
                inside = (tree / entry.name).resolve().is_relative_to(root)
            except (OSError, RuntimeError):  # a cycle of links
                inside = False
            if not inside or entry.link.startswith("/"):
                raise MlereduxError(f"{entry.name} in {shown} is a link that points outside.", hint="Remove it.")
        size += entry.size
        _refuse_too_much(shown, files, size)


def refuse_pointers(folder: Path) -> None:
    """Refuse an agent's folder that contains Git LFS pointers instead of files.

    Raises:
        MlereduxError: There are pointers; the message names them.
    """
    pointers = [
        entry.name
        for entry in entries(folder, str(folder))
        if entry.link is None and entry.size <= _POINTER_BYTES and os.read(entry.handle, 100).startswith(_POINTER)
    ]
    if pointers:
        more = f" and {len(pointers) - 3} more" if len(pointers) > 3 else ""
        raise MlereduxError(
            f"Git LFS stores {', '.join(pointers[:3])}{more}, which was not fetched.",
            hint="Clone the repository, run `git lfs pull` there, and specify the folder without a ref.",
        )


def check_listed(listing: bytes, shown: str) -> None:
    """Refuse a tree that is too large, before it is written.

    Args:
        listing: The output of `git ls-tree -r -l -z`.
    """
    rows = [row.partition(b"\t")[0].split() for row in listing.split(b"\0") if row]
    _refuse_too_much(shown, len(rows), sum(int(row[3]) for row in rows if row[3].isdigit()))


def digest(tree: Path) -> str:
    """Return a hash of the content of a folder of the cache."""
    hasher = hashlib.sha256()
    for entry in entries(tree, str(tree)):
        hasher.update(os.fsencode(entry.name) + b"\0" + entry.digest())
    return hasher.hexdigest()


def differs(folder: Path, tree: Path, ignored: Callable[[list[str]], set[str]]) -> bool:
    """Return whether a folder differs from a commit's tree: files are changed, missing, or new and not ignored.

    Args:
        folder: The user's folder, including files that copies omit.
        tree: Our copy of the commit.
        ignored: Returns which of these paths the commit's ignore files match.
    """
    wanted = {entry.name: (entry.size, entry.digest()) for entry in entries(tree, str(tree))}
    named = {part for name in wanted for part in name.split("/")}
    new: list[str] = []
    for entry in entries(folder, str(folder), LEFT_OUT - named):
        if entry.name not in wanted:
            new.append(entry.name)
            if len(new) > 10 * MAX_FILES:
                return True
            continue
        size, digest = wanted.pop(entry.name)
        if size != entry.size or digest != entry.digest():
            return True
    return bool(wanted) or bool(new and set(new) - ignored(new))


def _refuse_too_much(shown: str, files: int, size: int, most_files: int = 0, most: int = 0) -> None:
    most_files, most = most_files or MAX_FILES, most or MAX_BYTES
    if files > most_files or size > most:
        raise MlereduxError(
            f"{shown} is too large for an agent: more than {most_files:,} files or {most >> 20} MB.",
            hint="Use a smaller repository; let the agent's build download models and data.",
        )
