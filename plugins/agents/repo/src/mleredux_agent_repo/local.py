"""Read a git repository on this machine as files: its refs are parsed, its objects copied into our own repository.

References to other places (a `.git` that is a file or link, links within it, alternate objects, included configuration)
are not followed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.files import open_regular

from mleredux_agent_repo import git, trees

_NAME = re.compile(r"refs/[\w./+@=,%#-]+")
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MOST_REFS = 100_000
_MOST_BYTES = 4 << 30
_OBJECT_FILE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]+\.(pack|idx)")


@dataclass(frozen=True)
class Local:
    """The files of a repository.

    Attributes:
        folder: Its git directory.
        bare: Whether it has no work tree.
        head: The checked-out commit; None before the first commit.
        refs: Hashes by full name.
    """

    folder: Path
    bare: bool
    head: str | None
    refs: dict[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> bool:
        """Whether its hashes are SHA-256."""
        return any(len(value) == 64 for value in [self.head, *self.refs.values()] if value)

    def commit(self, ref: str) -> str | None:
        """Return the hash of a ref, or None if it does not exist; for an annotated tag, not that of a commit."""
        if ref == "HEAD" or _HASH.fullmatch(ref):
            return self.head if ref == "HEAD" else ref
        names = (ref, f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}", f"refs/remotes/{ref}")
        return next((self.refs[name] for name in names if name in self.refs), None)

    def stage(self, target: Path) -> Path:
        """Copy refs and objects into a new repository with our own configuration.

        Raises:
            MlereduxError: The objects are stored elsewhere, or are too large.
        """
        store = git.new_store(target, sha256=self.sha256)
        objects = self.folder / "objects"
        if (objects / "info" / "alternates").exists() or (objects / "info" / "http-alternates").exists():
            raise MlereduxError(
                f"{self.folder} borrows objects from another repository.",
                hint="Copy them into it: `git repack -a -d`, then remove objects/info/alternates.",
            )
        copied = target / "copied"
        trees.copy(objects, copied, str(objects), frozenset({"info"}), files=1_000_000, size=_MOST_BYTES)
        for path in copied.rglob("*"):
            name = path.relative_to(copied).as_posix()
            if path.is_file() and not path.is_symlink() and _OBJECT_FILE.fullmatch(name):
                place = store / "objects" / name
                place.parent.mkdir(exist_ok=True)
                path.rename(place)
        lines = [f"{value} {name}\n" for name, value in sorted(self.refs.items())]
        (store / "packed-refs").write_text("".join(lines), encoding="utf-8")
        if self.head is not None:
            (store / "HEAD").write_text(f"{self.head}\n", encoding="ascii")
        shallow = [line for line in (_read(self.folder, "shallow") or "").split() if _HASH.fullmatch(line)]
        if shallow:
            (store / "shallow").write_text("".join(f"{line}\n" for line in shallow), encoding="ascii")
        with (store / "config").open("a", encoding="ascii") as file:
            file.write("[uploadpack]\n\tallowAnySHA1InWant = true\n")
        return store


def find_local(path: Path) -> Local | None:
    """Return the repository whose work tree or git directory a folder is; None if it is neither."""
    for folder, bare in ((path / ".git", False), (path, True)):
        if all(_is_folder(folder / name) for name in ("", "objects", "refs")):
            head = _read(folder, "HEAD")
            if head is not None:
                return _with_refs(folder, bare, head.strip())
    return None


def _with_refs(folder: Path, bare: bool, head: str) -> Local:
    refs: dict[str, str] = {}
    for line in (_read(folder, "packed-refs") or "").splitlines()[:_MOST_REFS]:
        value, _, name = line.partition(" ")
        _add(refs, name, value)
    for entry in trees.entries(folder / "refs", str(folder)):
        if entry.link is None and entry.size < 200:
            _add(refs, f"refs/{entry.name}", os.read(entry.handle, 200).decode("ascii", "replace").strip())
    if head.startswith("ref: "):
        return Local(folder, bare, refs.get(head.removeprefix("ref: ")), refs)
    return Local(folder, bare, head if _HASH.fullmatch(head) else None, refs)


def _add(refs: dict[str, str], name: str, value: str) -> None:
    if len(refs) < _MOST_REFS and _NAME.fullmatch(name) and ".." not in name and _HASH.fullmatch(value):
        refs[name] = value


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _read(folder: Path, name: str) -> str | None:
    """Return the text of a file, or None if it does not exist or is a link."""
    try:
        with open_regular(folder / name) as file:
            return file.read(64 << 20).decode("utf-8", "replace")
    except OSError:
        return None
