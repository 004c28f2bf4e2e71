"""Runs in an object store, read without a local run directory."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from mleredux.errors import NotFound, StoreError
from mleredux.plugin.command import Catalogue
from mleredux.plugin.files import remove_tree

from mleredux_executor_nodes.objects import open_store
from mleredux_executor_nodes.replica import Replica
from mleredux_executor_nodes.snapshots import PIECE, File

_MOST_RUNS = 256
_BUSY_SECONDS = 60.0
"""A folder that was requested less than this time ago is not removed."""


def _left_out(path: str, size: int) -> bool:
    return size > PIECE and path.startswith(("output/", "submissions/"))


@dataclass
class _Known:
    """A run that was read."""

    replica: Replica
    lock: threading.Lock = field(default_factory=threading.Lock)
    used: float = 0.0
    size: int = 0


class StoredRuns:
    """Files of ended runs in an object store, all verified by their hashes.

    They are cached in a folder per run, except for agents' large files, which are read piece by piece.

    Args:
        catalogue: The catalogue of plugins that can open the store.
        url: The object store's URL.
        home: Location of the folders; existing contents are removed first.
        disk: Maximum total size of the folders, in bytes.
        memory: Maximum size of pieces cached in memory, in bytes.

    Raises:
        StoreError: The store can't be opened.
    """

    def __init__(
        self, catalogue: Catalogue, url: str, home: Path, *, disk: int = 4 << 30, memory: int = 16 * PIECE
    ) -> None:
        self._objects, self._home, self._disk, self.memory = open_store(catalogue, url), home, disk, memory
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._pieces: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def folder(self, run_id: str) -> Path:
        """Return a folder for reading a run's files, without large files of its agent.

        Raises:
            NotFound: The store does not contain the run.
            StoreError: The store does not respond, or an object is damaged or missing.
        """
        return self._current(run_id, files=True).folder

    def open(self, run_id: str, path: str) -> StoredFile:
        """Open a file of a run.

        Raises:
            FileNotFoundError: The run has no such regular file.
            NotFound: The store has no such run.
            StoreError: The store does not respond, or an object is damaged or missing.
        """
        replica = self._current(run_id)
        file = replica.tree.files.get(path)
        if file is None:
            raise FileNotFoundError(path)
        return StoredFile(self, replica, file)

    def forget(self, run_id: str) -> None:
        """Remove the cached files of a run."""
        with self._lock:
            known = self._known.pop(run_id, None)
        if known is not None:
            with known.lock:
                remove_tree(known.replica.folder)

    def piece(self, replica: Replica, name: str) -> bytes:
        """Return a verified piece.

        Raises:
            StoreError: The piece is damaged or missing, or the store does not respond.
        """
        key = (replica.folder.name, name)
        with self._lock:
            if (data := self._pieces.get(key)) is not None:
                self._pieces.move_to_end(key)
                return data
        data = replica.piece(name)
        with self._lock:
            self._pieces[key] = data
            while sum(map(len, self._pieces.values())) > self.memory:
                self._pieces.popitem(last=False)
        return data

    def _current(self, run_id: str, *, files: bool = False) -> Replica:
        with self._lock:
            if not self._known:
                remove_tree(self._home)  # from an earlier process
                self._home.mkdir(parents=True)
            replica = Replica(self._objects, run_id, self._home / run_id, _left_out)
            known = self._known.setdefault(run_id, _Known(replica))
            self._known.move_to_end(run_id)
            known.used = time.monotonic()
        try:
            with known.lock:
                known.replica.load_tree()
                if files:
                    known.replica.update()
                    known.size = known.replica.tree.without(_left_out).size
        except NotFound:
            self.forget(run_id)
            raise
        for superfluous in self._superfluous():
            self.forget(superfluous)
        return known.replica

    def _superfluous(self) -> list[str]:
        """Return runs whose folders exceed the limit, least recently used first."""
        with self._lock:
            size, number, superfluous = sum(known.size for known in self._known.values()), len(self._known), []
            for run_id, known in self._known.items():
                busy = time.monotonic() - known.used < _BUSY_SECONDS
                if busy or (size <= self._disk and number <= _MOST_RUNS):
                    break
                size, number = size - known.size, number - 1
                superfluous.append(run_id)
        return superfluous


@dataclass(frozen=True)
class StoredFile:
    """A regular file of a run in an object store."""

    _runs: StoredRuns
    _replica: Replica
    _file: File

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._file.size

    @property
    def modified(self) -> int:
        """The time of the last change, in nanoseconds."""
        return self._file.time

    def check(self, offset: int, most: int) -> None:
        """Verify the pieces that `read` returns, or the first ones if not all fit in memory.

        Raises:
            StoreError: A piece is damaged or missing, or the store does not respond.
        """
        end = min(offset + most, offset + self._runs.memory // 2)
        for at in range(offset, end, PIECE):
            self.read(at, min(PIECE, end - at))

    def read(self, offset: int, most: int) -> bytes:
        """Read up to `most` bytes from an offset, fetching only the pieces needed; fewer only at the end of the file.

        Raises:
            StoreError: A piece is damaged or missing, or the store does not respond.
        """
        parts, end = [], offset + most
        starts = itertools.accumulate((length for _, length in self._file.pieces), initial=0)
        for start, (name, length) in zip(starts, self._file.pieces, strict=False):
            if start < end and start + length > offset:
                data = self._runs.piece(self._replica, name) if name else bytes(length)
                if len(data) != length:
                    raise StoreError(f"Piece {name} has {len(data)} bytes, not {length}.")
                parts.append(data[max(0, offset - start) : end - start])
        return b"".join(parts)
