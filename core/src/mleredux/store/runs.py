"""All runs of a directory, with an SQLite index that can be rebuilt from them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.models import Event, RunSpec
from mleredux.store.run import Run

RUNS_VARIABLE = "MLEREDUX_RUNS_DIR"
_COLUMNS = "id, task, agent, seed, sandbox, status, cause, score, medal, created_at, updated_at"
_SCHEMA = f"CREATE TABLE IF NOT EXISTS runs ({_COLUMNS.replace('id,', 'id TEXT PRIMARY KEY,', 1)}) WITHOUT ROWID"


def default_runs_dir() -> Path:
    """`MLEREDUX_RUNS_DIR`, or the folder `runs` here."""
    return Path(os.environ.get(RUNS_VARIABLE, "runs"))


class RunStore:
    """The runs of a directory.

    Args:
        path: The directory; made when the first run is.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else default_runs_dir()

    @property
    def owner(self) -> str:
        """Identity of this store, put as a label on everything its sandboxes create."""
        return hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:16]

    def create(self, **asked: Any) -> Run:
        """Make a new run, in state `queued`.

        Args:
            asked: The fields of `RunSpec` but `id` and `created_at`.
        """
        now = datetime.now(UTC)
        for _ in range(8):
            task = re.sub(r"[^A-Za-z0-9.-]+", "-", str(asked["task"]))[:48]
            name = f"{now:%Y%m%d-%H%M%S}-{task}-{asked['agent']}-{secrets.token_hex(3)}"
            spec = RunSpec(id=name, created_at=now, **asked)
            try:
                run = Run.create(self.path / name, spec)
            except FileExistsError:
                continue
            except OSError as error:
                raise MlereduxError(
                    f"The run's directory can't be made in {self.path}: {error.strerror or error}.",
                    hint="Name another with --runs-dir.",
                ) from error
            self.watch(run)
            self.update(run)
            return run
        raise MlereduxError(f"No free name for a run was found in {self.path}.")

    def get(self, name: str) -> Run:
        """A run by its id, by a part of it that is unambiguous, by its path, or the newest as `last`.

        Raises:
            NotFound: There is none, or several.
        """
        if (self.path / name / "run.json").is_file() and "/" not in name:
            return self.watch(Run(self.path / name))
        if "/" in name or name in (".", ".."):
            return Run(Path(name).resolve())
        names = sorted(self.ids())
        near = names[-1:] if name == "last" else [known for known in names if name in known]
        if len(near) == 1:
            return self.watch(Run(self.path / near[0]))
        if near:
            raise NotFound(f"{len(near)} runs match {name!r}.", hint=f"Say more of the id, like {near[-1]}.")
        raise NotFound(f"There is no run {name!r} in {self.path}.", hint="See `mleredux runs`.")

    def ids(self) -> Iterator[str]:
        """Ids of all runs on disk."""
        if self.path.is_dir():
            yield from (path.parent.name for path in self.path.glob("*/run.json"))

    def watch(self, run: Run) -> Run:
        """Keep the index up to date with a run's state changes."""

        def on_event(changed: Run, event: Event) -> None:
            if event.type == "state":
                self.update(changed)

        run.observers.append(on_event)
        return run

    def update(self, run: Run) -> None:
        """Write a run's row. The index is a cache: where it can't be written, runs go on without."""
        with contextlib.suppress(sqlite3.Error), self._index() as database:
            self._insert(database, run)

    def list(
        self, *, task: str | None = None, agent: str | None = None, status: str | None = None
    ) -> list[dict[str, Any]]:
        """Rows of the index, newest first, filtered; the index is rebuilt where it misses runs or can't be read."""
        try:
            with self._index() as database:
                known = {row["id"] for row in database.execute("SELECT id FROM runs")}
            if known != set(self.ids()):
                self.rebuild()
        except sqlite3.DatabaseError:
            self.rebuild()
        wanted = {key: value for key, value in {"task": task, "agent": agent, "status": status}.items() if value}
        where = " WHERE " + " AND ".join(f"{key} = :{key}" for key in wanted) if wanted else ""
        with self._index() as database:
            rows = database.execute(f"SELECT {_COLUMNS} FROM runs{where} ORDER BY id DESC", wanted)
            return [dict(row) for row in rows]

    def rebuild(self) -> int:
        """Make the index anew from the run directories; the number of runs."""
        if not self.path.is_dir():
            return 0
        for suffix in ("", "-wal", "-shm"):
            (self.path / f"index.sqlite{suffix}").unlink(missing_ok=True)
        count = 0
        with self._index() as database:
            for name in self.ids():
                with contextlib.suppress(MlereduxError, ValueError):
                    self._insert(database, Run(self.path / name))
                    count += 1
        return count

    def delete(self, run: Run) -> None:
        """Remove a run that nobody works on.

        Raises:
            MlereduxError: Somebody does.
        """
        if run.alive:
            raise MlereduxError(f"Run {run.id} is alive.", hint="Cancel it first.")
        shutil.rmtree(run.path)
        with contextlib.suppress(sqlite3.Error), self._index() as database:
            database.execute("DELETE FROM runs WHERE id = ?", (run.id,))

    def is_alive(self, run_id: str) -> bool:
        """Whether a process is working on the run of that id."""
        path = self.path / run_id
        return (path / "run.json").is_file() and Run(path).alive

    @contextlib.contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(self.path / "index.sqlite", timeout=30)) as database:
            database.row_factory = sqlite3.Row
            database.execute(_SCHEMA)
            with database:
                yield database

    @staticmethod
    def _insert(database: sqlite3.Connection, run: Run) -> None:
        report = run.report
        row = (
            run.id,
            run.spec.task,
            run.spec.agent,
            run.spec.seed,
            run.spec.sandbox,
            str(run.state),
            str(run.cause) if run.cause else None,
            report.score if report else None,
            report.medal if report else None,
            run.spec.created_at.isoformat(),
            datetime.now(UTC).isoformat(),
        )
        database.execute(f"INSERT OR REPLACE INTO runs ({_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)
