"""The runs of a local directory, as a source of pages."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import DataStore, Record, current
from mleredux.plugin.experiment import Request, RunPlan, plan
from mleredux.plugin.files import open_below, write_atomically

from mleredux_view.source import Launch, RunQuery, RunTable

_TEXT = ("id", "task", "agent", "experiment", "arm", "message", "status", "cause")
_WATCHED = (
    "events.jsonl",
    "logs/agent.log",
    "report.json",
    "rollout.json",
    "llm/calls.jsonl",
    "output/rollout/trajectory.json",
)
LABELS = "labels.json"
"""The file in the runs directory with the labels of its runs."""
_LABELS_BYTES = 64 << 20
_MOST_STARTED = 100
"""Maximum number of runs started at once, since each run is a process."""
_FIRST, _PIECE = 60, 250
"""Number of index rows that are read before the first page is shown, and afterwards in one batch."""
_REST = 0.7
"""Delay in seconds before the other rows are read, so that the first page loads undisturbed."""
_IDLE = 10
"""The inverse of the maximum share of time spent on reading the index."""


class LocalSource:
    """Reads a runs directory through its index, and checks for changes whenever that is cheap.

    Args:
        store: The store of the runs.
        data_dir: The folder of prepared data, for runs that are retried.
        place: A description of where the runs are stored; None: the store's directory.
    """

    def __init__(self, store: RunStore, data_dir: str | None = None, place: str | None = None) -> None:
        self.store, self._data_dir, self._place = store, data_dir, place
        self._lock = threading.Lock()
        self._rows: list[Record] = []
        self._texts: dict[str, str] = {}
        self._sorted: dict[tuple[str, bool], list[Record]] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._version, self._refreshed_at, self._cost = 0, -1e9, 0.0
        self._reading: threading.Thread | None = None
        self._unread = 0

    @property
    def place(self) -> str:
        """Return the description of the directory."""
        return self._place or str(self.store.path)

    @property
    def folder(self) -> Path | None:
        """Return the directory."""
        return self.store.path

    def shown(self, page: str) -> str:
        """Return the page unchanged."""
        return page

    @property
    def data_dir(self) -> Path | None:
        """Return the folder of prepared data, if it is not the default one."""
        return Path(self._data_dir) if self._data_dir else None

    def runs(self, query: RunQuery) -> RunTable:
        """Return the runs that match, from memory."""
        self._refresh()
        if not query.partial and (reading := self._reading):
            reading.join()
            self._refreshed_at = -1e9
            self._refresh()
        rows, facets = self._matching(query, self._in_order(query))
        total = len(rows)
        if query.after is not None:
            rows = _rows_after(rows, query)
        more = len(rows) > query.limit
        rows = [{**row, "labels": self._labels.get(row["id"], {})} for row in rows[: query.limit]]
        after = json.dumps(_key(rows[-1], query)) if more else None
        return RunTable(rows, total, facets, after, unread=self._unread)

    def run(self, run_id: str) -> Run:
        """Return a run by its id."""
        if run_id != Path(run_id).name or not (self.store.path / run_id / "run.json").is_file():
            raise NotFound(f"There is no run {run_id!r} in {self.store.path}.", hint="See the list of runs.")
        return Run(self.store.path / run_id)

    def experiments(self, _experiment: str | None = None) -> tuple[()]:
        """Return nothing: local experiments are records in the directory."""
        return ()

    def submissions(self) -> tuple[()]:
        """Return nothing: on this machine, people submit through runs."""
        return ()

    def version(self, run_id: str | None = None) -> str:
        """Return a number that increases with each change of any run; for one run, the sizes of its files and whether
        it is alive."""
        if run_id is None:
            self._refresh()
            return str(self._version)
        path = self.store.path / run_id
        return f"{version_of(path)}-{Run(path).alive}"

    def stop(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Ask the processes that execute the runs to stop."""
        for run in map(self.run, run_ids):
            if run.state.final:
                yield f"{run.id} is already {run.state}."
            elif run.alive:
                run.ask_to_cancel()
                yield f"Asked {run.id} to stop."
            else:
                yield f"{run.id} is not being executed."

    def retry(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Start the same runs again, outside their experiments, each in its own process that outlives this one."""
        chosen = list(map(self.run, run_ids))
        if len(chosen) > _MOST_STARTED:
            hint = f"Select at most {_MOST_STARTED}."
            raise MlereduxError(f"{len(chosen):,} runs are too many to start together on this machine.", hint=hint)
        for run in chosen:
            repeated = run.spec.model_copy(update={"experiment": None, "arm": None})
            yield f"Requested {run.id} again: {self._start(repeated, self._data_dir or run.spec.data_dir)}."

    def launch(self, form: Launch) -> Iterator[str]:
        """Start runs, each in its own process that outlives this one.

        Raises:
            MlereduxError: The task or agent does not exist, its data is missing, or the agent can't run like this.
        """
        data, task = DataStore(self._data_dir), current().task(form.task)
        current().agent(form.agent, form.options)
        data.check_raw(task)
        limits = {"time_limit": form.time_limit} if form.time_limit else {}
        how: dict[str, Any] = {"sandbox": form.sandbox, "options": dict(form.options), "limits": limits}
        for planned in plan(Request.matrix([form.task], [form.agent], form.seeds, **how), current(), own_machine=True):
            yield self._start(planned, data.path.absolute())

    def label(self, run_ids: Iterable[str], name: str, value: str) -> Iterator[str]:
        """Write a label into the file of all labels in the directory."""
        with self._lock:
            labels = _labels_in(self.store.path)
            for run in map(self.run, run_ids):
                own = labels.setdefault(run.id, {})
                own.pop(name, None)
                if value:
                    own[name] = value
                yield f"{'Labeled' if value else 'Removed the label of'} {run.id}."
            write_atomically(self.store.path / LABELS, json.dumps(labels, indent=1) + "\n")
            self._refreshed_at = -1e9

    def _start(self, planned: RunPlan, data_dir: Path | str) -> str:
        """Create a run, let a process execute it, and return its id."""
        run = self.store.create(planned, data_dir)
        command = [sys.executable, "-m", "mleredux", "run", "--resume", run.id, "--runs-dir", str(self.store.path)]
        nothing = subprocess.DEVNULL
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
        return run.id

    def columns(self) -> Mapping[str, Any]:
        """Return the description of the directory and no user, since users do not sign in here."""
        return {"where": self.place, "user": None}

    def _refresh(self) -> None:
        """Read the index again unless it was read recently; if many rows are missing, a thread reads them."""
        with self._lock:
            reading = self._reading if self._reading and self._reading.is_alive() else None
            if time.monotonic() - self._refreshed_at < max(0.5, (1 if reading else _IDLE) * self._cost):
                return
            begun = time.monotonic()
            rows, labels = self.store.rows(most=0 if reading else _FIRST), _labels_in(self.store.path)
            self._unread = self.store.behind
            if self._unread and not reading:
                reading = threading.Thread(target=_read_all, args=(RunStore(self.store.path),), daemon=True)
                reading.start()
            self._reading = reading
            if (rows, labels) != (self._rows, self._labels):
                self._rows, self._labels, self._sorted, self._version = rows, labels, {}, self._version + 1
                self._texts = {row["id"]: _searched(row, labels.get(row["id"], {})) for row in rows}
            self._refreshed_at = time.monotonic()
            self._cost = self._refreshed_at - begun

    def _in_order(self, query: RunQuery) -> list[Record]:
        """Return all rows in the order of a query; each order is computed once per change."""
        with self._lock:
            order = query.sort, query.ascending
            if order not in self._sorted:
                self._sorted[order] = sorted(self._rows, key=lambda row: _key(row, query), reverse=not query.ascending)
            return self._sorted[order]

    def _matching(self, query: RunQuery, rows: list[Record]) -> tuple[list[Record], dict[str, list[tuple[str, int]]]]:
        """Return the matching rows and the counts of facets; a row excluded by only one filter counts in that filter's
        facet."""
        shown = list(rows)
        for word in query.search.lower().split():
            shown = [row for row in shown if word in self._texts[row["id"]]]
        by_one: dict[str, list[Record]] = {name: [] for name in query.wanted}
        if query.wanted:
            matching, shown = shown, []
            for row in matching:
                refused = [name for name, values in query.wanted.items() if _text(row[name]) not in values]
                if not refused:
                    shown.append(row)
                elif len(refused) == 1:
                    by_one[refused[0]].append(row)
        facets = {}
        for name in query.facets:
            counts = Counter(map(operator.itemgetter(name), chain(shown, by_one.get(name, ()))))
            facets[name] = [(_text(value), count) for value, count in counts.most_common()]
        return shown, facets


def _read_all(store: RunStore) -> None:
    """Create missing rows of the index in batches, so that other processes can write theirs in between."""
    time.sleep(_REST)
    most = _PIECE
    while store.rows(most=most) and store.behind:
        most = min(2 * most, 8 * _PIECE)  # each batch lists all runs


def _searched(row: Record, labels: Mapping[str, str]) -> str:
    return "\n".join([*(str(row[name] or "") for name in _TEXT), *map("=".join, labels.items())]).lower()


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _key(row: Record, query: RunQuery) -> list[Any]:
    """Return a sort key that puts runs without a value last in both directions, with the id as tie breaker."""
    value = row[query.sort]
    return [(value is None) == query.ascending, 0 if value is None else value, row["id"]]


def _rows_after(rows: list[Record], query: RunQuery) -> list[Record]:
    try:
        after = json.loads(query.after or "")
        later = operator.gt if query.ascending else operator.lt
        return [row for row in rows if later(_key(row, query), after)]
    except (ValueError, TypeError):
        raise MlereduxError("The address is not a page of this list.", hint="Open the list again.") from None


def version_of(run: Path) -> str:
    """Return a string, built from the sizes of the run's files, that changes when the run does."""
    return "-".join(str(_size(run / name)) for name in _WATCHED)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _labels_in(folder: Path) -> dict[str, dict[str, str]]:
    try:
        with open_below(folder, LABELS) as file:
            labels = json.loads(file.read(_LABELS_BYTES))
        return {str(run): {str(name): str(value) for name, value in own.items()} for run, own in labels.items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
