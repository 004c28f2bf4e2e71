"""Transfer of prepared data to nodes: published once under its hash, and fetched once per node."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mleredux.errors import StoreError
from mleredux.plugin.command import DataStore
from mleredux.plugin.executor import ObjectStore
from mleredux.plugin.files import FileLock, remove_tree, write_atomically
from mleredux.plugin.host import CHECKSUMS_FILE, LEADERBOARD_FILE, SPOILED_FILE
from mleredux.plugin.task import Task, settle_times

from mleredux_executor_nodes.objects import digest, read_verified
from mleredux_executor_nodes.snapshots import Scanner, Tree, restore

_PIECES = "data/pieces"


def _left_out(path: str) -> bool:
    parts = path.split("/")
    known = parts[0] == "prepared" or path == LEADERBOARD_FILE
    return not known or parts[-1] in (CHECKSUMS_FILE, SPOILED_FILE) or parts[-1].startswith(".")


class Shelf:
    """Prepared data that this process publishes; unchanged files are read once.

    Args:
        objects: The object store.
        data: The local data store.
    """

    def __init__(self, objects: ObjectStore, data: DataStore) -> None:
        self._objects, self._data = objects, data
        self._scanners: dict[str, Scanner] = {}
        self._published: set[str] = set()

    def publish(self, task: Task) -> str | None:
        """Publish a task's prepared data, unless the object store has it.

        Returns:
            The SHA-256 of its tree, which lists all files with their hashes; None if the data is not prepared here.

        Raises:
            StoreError: The object store does not respond.
            DataError: The data is of another version of the task, or damaged.
        """
        if self._data.find(task) is None:
            return None
        home = self._data.home(task)
        scanner = self._scanners.setdefault(task.id, Scanner(home, skip=_left_out, times=False))
        name = digest(scanner.scan(digest).dump())
        if name in self._published:
            return name
        if self._objects.read(f"data/trees/{name}") is None:
            stored: set[str] = set()

            def put(piece: bytes) -> str:
                key = digest(piece)
                if key not in stored:
                    self._objects.write(f"{_PIECES}/{key}", piece)
                    stored.add(key)
                return key

            tree = Scanner(home, skip=_left_out, times=False).scan(put)
            if tree.links:
                raise StoreError(f"The prepared data of {task.id} contains links, which can't be published.")
            if digest(tree.dump()) != name:
                raise StoreError(f"The prepared data of {task.id} is changing.", hint="Try again when it is prepared.")
            self._objects.write(f"data/trees/{name}", tree.dump())  # last: if it exists, so do all pieces
        self._published.add(name)
        return name


def stage(objects: ObjectStore, name: str, task_id: str, home: Path) -> tuple[Path, int]:
    """Fetch prepared data to this machine, unless it is present; locally changed files are fetched again.

    Concurrent calls by several processes are safe: one does the work.

    Args:
        objects: The object store.
        name: The return value of `Shelf.publish`.
        task_id: The task's id.
        home: The folder of staged data.

    Returns:
        The directory for `DataStore`, and the number of bytes fetched.

    Raises:
        StoreError: The object store does not respond, or does not have the data.
        OSError: The folder can't be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    place, record, fetched = home / name, home / f"{name}.json", 0

    def get(piece: str) -> bytes:
        nonlocal fetched
        content = read_verified(objects, f"{_PIECES}/{piece}")
        if content is None:
            raise StoreError(f"Object {_PIECES}/{piece} is not in {objects.url}.")
        fetched += len(content)
        return content

    with FileLock(home / f"{name}.lock"):
        if place.exists() and _unchanged(place, record):
            return place, 0
        content = read_verified(objects, f"data/trees/{name}")
        if content is None:
            raise StoreError(f"Data {name} is not in {objects.url}.", hint="Submit the run again.")
        tree = Tree.load(content)
        staged = place if place.exists() else home / f".making-{name}"
        if staged == place:
            _remove_damaged(staged / task_id, tree)
        else:
            remove_tree(staged)
        restore(staged / task_id, tree, get, skip=lambda path: path.rpartition("/")[2] == CHECKSUMS_FILE)
        settle_times(staged)
        for path in tree.files:
            (staged / task_id / path).chmod(0o444)
        for path in sorted(tree.folders, reverse=True):
            if "/" in path:
                (staged / task_id / path).chmod(0o555)
        staged.replace(place)
        write_atomically(record, json.dumps(_identities(place)))
    print(f"staged {fetched} bytes of {task_id}", file=sys.stderr)
    return place, fetched


def _unchanged(place: Path, record: Path) -> bool:
    try:
        return bool(json.loads(record.read_bytes()) == _identities(place))
    except (OSError, ValueError):
        return False


def _identities(place: Path) -> dict[str, list[int]]:
    identities = {}
    for above, _, names in os.walk(place):
        for name in names:
            if name != CHECKSUMS_FILE:
                status = (Path(above) / name).lstat()
                identities[os.path.relpath(Path(above, name), place)] = [
                    *(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                ]
    return identities


def _remove_damaged(home: Path, tree: Tree) -> None:
    """Remove files that do not match their hashes; make folders writable again."""
    for path in tree.folders:
        if (home / path).is_dir() and not (home / path).is_symlink():
            (home / path).chmod(0o755)
    now = Scanner(home, skip=lambda _path: False, times=False).scan(digest)
    for path, file in now.files.items():
        if path in tree.files and file.pieces != tree.files[path].pieces:
            (home / path).unlink()
        elif path in tree.files:
            os.utime(home / path, ns=(0, 0))
