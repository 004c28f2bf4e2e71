"""The runs of a directory, with an SQLite index that can be rebuilt from them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux._core.plain import recorded_path
from mleredux._core.store.files import FileLock
from mleredux._core.store.run import Run
from mleredux._core.store.sparse import remove_tree
from mleredux._core.store.states import STAGES
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import Event, RunPlan, RunSpec

RUNS_VARIABLE = "MLEREDUX_RUNS_DIR"
_COLUMNS = (
    "id, task, agent, seed, sandbox, status, cause, score, medal, verdict, created_at, updated_at, experiment, arm, "
    "percentile, started_at, seconds, paused_seconds, tokens, cost_usd, message, curve"
)
_PLANNED = ("task", "agent", "seed", "sandbox", "experiment", "arm")
_ALL_COLUMNS = f"{_COLUMNS}, stamp"
_SCHEMA = f"CREATE TABLE IF NOT EXISTS runs ({_ALL_COLUMNS.replace('id,', 'id TEXT PRIMARY KEY,', 1)}) WITHOUT ROWID"
OBFUSCATED = "task"
"""Replaces the task's name in the id of a run whose task is obfuscated."""
_SECOND = len("20260101-000000")
"""The length of the time in the id of a run."""
_UNREADABLE = "damaged"
"""The status of a run whose directory can't be read."""


def default_runs_dir() -> Path:
    """Return `MLEREDUX_RUNS_DIR`, or the folder `runs` in the current folder."""
    return Path(os.environ.get(RUNS_VARIABLE, "runs"))


class RunStore:
    """The runs of a directory.

    Args:
        path: The directory, created with the first run. A relative path is resolved immediately.
        owner: The owner of the outer store, if this store is part of another.

    Attributes:
        behind: The number of runs whose rows the last call to `rows` did not update.
    """

    behind = 0

    def __init__(self, path: Path | str | None = None, owner: str | None = None) -> None:
        self.path = recorded_path(Path(path if path is not None else default_runs_dir()))
        self._owner = owner

    @property
    def owner(self) -> str:
        """Identity of this store, attached as a label to everything its sandboxes create."""
        return self._owner or hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:16]

    def new_id(self, task: str, agent: str, digits: int = 6, *, obfuscated: bool = False) -> str:
        """Return an id for a new run: the time, the task, the agent, and random digits.

        Args:
            task: The task.
            agent: The agent.
            digits: The number of random digits.
            obfuscated: Whether to omit the task, because the agent sees paths of the run directory.
        """
        now = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
        part = OBFUSCATED if obfuscated else _task_part(task)
        return f"{now}-{part}-{_short(agent)}-{secrets.token_hex(digits // 2)}"

    def create(self, plan: RunPlan, data_dir: Path | str, run_id: str | None = None) -> Run:
        """Create a run in state `queued`.

        Args:
            plan: The plan of the run, or the specification of a run to repeat.
            data_dir: The folder of the data.
            run_id: An unused id from `new_id`; None: a new one.

        Raises:
            MlereduxError: The directory can't be created, or the id is in use.
        """
        fields = {name: getattr(plan, name) for name in RunPlan.model_fields}
        for _ in range(1 if run_id else 8):
            name = run_id or self.new_id(plan.task, plan.agent, obfuscated=plan.obfuscated)
            spec = RunSpec(id=name, data_dir=str(data_dir), created_at=datetime.now(UTC), **fields)
            try:
                run = Run.create(self.path / name, spec)
            except FileExistsError:
                continue
            except OSError as error:
                raise MlereduxError(
                    f"The run's directory can't be created in {self.path}: {error.strerror or error}.",
                    hint="Choose another with --runs-dir.",
                ) from error
            self.watch(run)
            self.update(run)
            return run
        raise MlereduxError(f"No free name for a run was found in {self.path}.")

    def get(self, name: str) -> Run:
        """Return a run by its id, by an unambiguous part of it, by its path, or as `last`, which is the newest run.

        Raises:
            NotFound: No run or several runs match.
        """
        run = Run(self.locate(name))
        return self.watch(run) if run.path.parent.resolve() == self.path.resolve() else run

    def locate(self, name: str) -> Path:
        """Return the directory of a run that may be damaged; names are as for `get`.

        Raises:
            NotFound: No run or several runs match.
        """
        is_path = "/" in name or name in (".", "..")
        path = Path(os.path.normpath(Path.cwd() / name)) if is_path else self.path / name
        if os.path.lexists(path / "run.json"):
            return path
        if is_path:
            raise NotFound(f"There is no run in {path}.", hint="See `mleredux runs`.")
        names = sorted(self.ids())
        near = [known for known in names if name in known]
        if name == "last" and names:
            of_a_second = [known for known in names if known[:_SECOND] == names[-1][:_SECOND]]
            near = [max(of_a_second, key=lambda known: (self.path / known / "run.json").stat().st_mtime_ns)]
        if len(near) == 1:
            return self.path / near[0]
        if near:
            raise NotFound(
                f"{len(near)} runs match {name!r}.", hint=f"Ambiguous; use a longer part of the id, e.g. {near[-1]}."
            )
        raise NotFound(f"There is no run {name!r} in {self.path}.", hint="See `mleredux runs`.")

    def ids(self) -> Iterator[str]:
        """Return the ids of all runs on disk."""
        if self.path.is_dir():
            yield from filter(self._has_run, os.listdir(self.path))  # noqa: PTH208 (ten thousand of them)

    def newest(self, task: str) -> Iterator[Run]:
        """Return the runs of a task, newest first, by the names of their folders, without reading the index."""
        if not self.path.is_dir():
            return
        parts = [f"-{_task_part(name)}-" for name in (task, OBFUSCATED)]
        paths = (path for path in self.path.iterdir() if any(part in path.name for part in parts))
        for path in sorted(paths, reverse=True):
            with contextlib.suppress(MlereduxError, ValueError, OSError):  # damaged, or removed in the meantime
                if (run := Run(path)).spec.task == task:
                    yield run

    def watch(self, run: Run) -> Run:
        """Write the run's row to the index when it ends; until then, `rows` refreshes it, as its event log grows."""

        def on_event(changed: Run, event: Event) -> None:
            if event.type == "state" and changed.state.final:
                self.update(changed)

        run.observers.append(on_event)
        return run

    def update(self, run: Run) -> None:
        """Write a run's row. The index is only a cache: if it can't be written, runs continue without it."""
        with contextlib.suppress(sqlite3.Error), self._index() as database:
            _begin(database)
            self._insert(database, run.id, run)

    def rows(self, *, most: int | None = None, **wanted: str | None) -> list[dict[str, Any]]:
        """Return rows of the index, newest first; only those with the wanted values, such as `task="digits"`.

        `status` is `interrupted` if a run has not ended and its process is dead. `curve` is the score over time,
        `[[seconds, score], …]`, with at most 24 versions.

        Rows that are missing, or older than their run's files, are refreshed; `most` limits this to that many of
        the newest runs, and `behind` counts the rest. An index that can't be read is rebuilt, and one that can't be
        written is ignored.
        """
        try:
            rows = self._fresh_rows(most)
        except sqlite3.Error:
            try:
                self.rebuild()
                rows = self._fresh_rows(most)
            except (sqlite3.Error, OSError):
                rows = [dict(zip(_COLUMNS.split(", "), self._row(name), strict=False)) for name in self.ids()]
        curves = json.loads(f"[{','.join(row['curve'] or '[]' for row in rows)}]")  # at once: there may be thousands
        for row, curve in zip(rows, curves, strict=True):
            row["curve"] = curve
            if row["status"] in STAGES and not FileLock(self.path / row["id"] / ".lock").held_elsewhere():
                with contextlib.suppress(MlereduxError, ValueError, OSError):
                    row["status"] = Run(self.path / row["id"]).status
        rows = [row for row in rows if all(row[key] == value for key, value in wanted.items() if value)]
        return sorted(rows, key=lambda row: str(row["id"]), reverse=True)

    def rebuild(self) -> int:
        """Rebuild the index from the run directories; return the number of runs."""
        if not self.path.is_dir():
            return 0
        try:
            with self._index() as database:
                return self._fill(database)
        except sqlite3.DatabaseError:  # not a database, or of another version
            for suffix in ("", "-wal", "-shm", "-journal"):
                (self.path / f"index.sqlite{suffix}").unlink(missing_ok=True)
            with self._index() as database:
                return self._fill(database)

    def delete(self, run: Run | Path) -> None:
        """Delete a run that is not being executed, or the directory of a damaged run.

        Raises:
            MlereduxError: The run is being executed.
        """
        folder = run if isinstance(run, Path) else run.path
        linked = folder.is_symlink()
        if not linked and FileLock(folder / ".lock").held_elsewhere():
            raise MlereduxError(f"Run {folder.name} is being executed.", hint="Cancel it first.")
        if linked:
            folder.unlink()
        elif not remove_tree(folder):
            raise MlereduxError(f"Run {folder.name} can't be removed from {folder}.", hint="Check its permissions.")
        if folder.parent.resolve() == self.path.resolve():
            with contextlib.suppress(sqlite3.Error, UnicodeError), self._index() as database:
                database.execute("DELETE FROM runs WHERE id = ?", (folder.name,))

    def close_disks(self, alive: Callable[[str], bool]) -> None:
        """Move files of agents whose program was killed into their run directories, once no sandbox runs these agents.

        Args:
            alive: Returns whether the run with an id may still be executed, or resumed with its agent.
        """
        from mleredux._core.sandboxes.volume import INNER, close_disk, remaining_disks

        # Decided before any lock is taken, as a locked run looks alive.
        for path in [path for path in remaining_disks(self.path) if not alive(path.name)]:
            with FileLock(path / ".lock").attempt() as acquired:
                if not acquired:
                    continue
                for name in INNER:
                    remove_tree(path / name)
                with contextlib.suppress(OSError):  # it stays unchanged until the run is resumed or deleted
                    close_disk(path)

    def is_alive(self, run_id: str) -> bool:
        """Return whether a process is executing the run with this id."""
        path = self.path / run_id
        return (path / "run.json").is_file() and Run(path).alive

    @contextlib.contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(self.path / "index.sqlite", timeout=30)) as database:
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA synchronous = OFF")  # a cache: if a power failure damages it, it is rebuilt
            database.execute(_SCHEMA)
            with database:
                yield database

    def _fresh_rows(self, most: int | None) -> list[dict[str, Any]]:
        """Return all rows, after renewing those older than their run's files, or only the newest such rows."""
        self.behind = 0
        if not self.path.is_dir():
            return []
        with self._index() as database:
            known, there, stale = dict(database.execute("SELECT id, stamp FROM runs").fetchall()), set(), []
            for name in os.listdir(self.path):  # noqa: PTH208 (ten thousand of them)
                if (stamp := self._stamp(name)) == known.get(name) or self._has_run(name):
                    there.add(name)
                    stale += [] if stamp == known.get(name) else [name]
            if most is not None and len(stale) > most:
                self.behind, stale = len(stale) - most, sorted(stale, reverse=True)[:most]
            if stale or known.keys() - there:
                _begin(database)
                database.executemany("DELETE FROM runs WHERE id = ?", [(name,) for name in known.keys() - there])
                for name in stale:
                    self._insert(database, name)
            cursor, names = database.cursor(), _COLUMNS.split(", ")
            cursor.row_factory = None
            return [dict(zip(names, row, strict=True)) for row in cursor.execute(f"SELECT {_COLUMNS} FROM runs")]

    def _fill(self, database: sqlite3.Connection) -> int:
        _begin(database)  # other writers wait, so that the rows read here are not older than theirs
        database.execute("DELETE FROM runs")
        names = list(self.ids())
        for name in names:
            self._insert(database, name)
        return len(names)

    def _insert(self, database: sqlite3.Connection, name: str, run: Run | None = None) -> None:
        row = self._row(name, run)
        database.execute(f"INSERT OR REPLACE INTO runs ({_ALL_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)

    def _has_run(self, name: str) -> bool:
        """Return whether a folder contains a run, or a damaged one; names that are not text never belong to runs."""
        return name.isprintable() and os.path.lexists(f"{self.path}/{name}/run.json")

    def _stamp(self, name: str) -> str:
        """Return a text that changes if a run gains events, or files in the folders whose links `Run` refuses."""
        stamp = ""
        for part in ("events.jsonl", "", "logs", "submissions"):
            with contextlib.suppress(OSError):
                status = os.stat(f"{self.path}/{name}/{part}")  # noqa: PTH116 – for ten thousand runs at once
                stamp += f"{part} {status.st_size} {status.st_mtime_ns} "
        return stamp

    def _row(self, name: str, run: Run | None = None) -> tuple[Any, ...]:
        """Return the row of a run for the index; for a run that can't be read, the row states only that."""
        stamp, now = self._stamp(name), datetime.now(UTC).isoformat()  # read first: newer events make it stale
        row = dict.fromkeys(_ALL_COLUMNS.split(", ")) | {"id": name, "updated_at": now, "stamp": stamp}
        try:
            run = run or Run(self.path / name)
            row |= {field: getattr(run.spec, field) for field in _PLANNED}
            cause, began, results = run.cause, run.log.state.began, run.results()
            row |= results | {
                "status": str(run.state),
                "cause": str(cause) if cause else None,
                "created_at": run.spec.created_at.isoformat(),
                "started_at": began.isoformat() if began else None,
                "curve": json.dumps(results["curve"]) if results["curve"] else None,
            }
        except (MlereduxError, ValueError, OSError) as error:
            row |= {"status": _UNREADABLE, "message": str(error)}
        return tuple(row.values())


def _begin(database: sqlite3.Connection) -> None:
    """Take the write lock now, so that data read from now on does not overwrite a newer row."""
    if not database.in_transaction:
        database.execute("BEGIN IMMEDIATE")


def _task_part(task: str) -> str:
    """Return a task's id in the form used in the ids of runs."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", task)[:48]


def _short(agent: str) -> str:
    """Return an agent's id, or the scheme of a reference (`repo` of `repo:https://…`)."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", agent.partition(":")[0]).strip("-.")[:48] or "agent"
