"""A lab for executors: runs of an agent that records its starts, whatever happens to nodes and engine meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from mleredux._core.data import DataStore
from mleredux._core.executors import Executor, JobStatus
from mleredux._core.pipeline import Pipeline
from mleredux._core.planning.plans import plan
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux.models.request import Request

from mleredux_support.gate import FOLDER_VARIABLE, GO_ON

PLUGINS = ("mleredux_testing.toys", "mleredux_support.gate")


@dataclass(frozen=True)
class Count:
    """The results of runs.

    Attributes:
        done: Runs that ended with a result.
        lost: Ids of runs that did not, or whose log has gaps.
        twice: Ids of runs that ended more than once, or whose agent was started more often than recorded.
    """

    done: int
    lost: tuple[str, ...]
    twice: tuple[str, ...]


class Lab:
    """A runs directory, and threads that follow its runs at an executor.

    Args:
        home: A folder; the environment (`environment`) must point to `starts` in it before the engine starts jobs.
        executor: The executor.
        object_store: URL of the object store for its nodes.
    """

    def __init__(self, home: Path, executor: Executor, object_store: str | None = None) -> None:
        self.object_store = object_store
        self.home, self.executor, self.store = home, executor, RunStore(home / "runs")
        self.starts_folder = home / "starts"
        self.starts_folder.mkdir(exist_ok=True)
        self.catalogue = Catalogue(load=PLUGINS)
        self.said: dict[str, list[str]] = {}
        self._pipelines: list[Pipeline] = []

    @staticmethod
    def environment(home: Path) -> dict[str, str]:
        """Return the environment variables of a lab in that folder."""
        return {FOLDER_VARIABLE: str(home / "starts")}

    def new(self, *, waits: bool = False, **asked: Any) -> Run:
        """Return a new run; with `waits`, it waits until `release`."""
        request = Request.single("toy", "waiting", sandbox="process", seed=int(waits), **asked)
        [planned] = plan(request, self.catalogue)
        return self.store.create(planned, self.home / "data")

    def pipeline(self) -> Pipeline:
        """Return a pipeline with the executor, like that of the command line."""

        def progress(run: Run, message: str) -> None:
            self.said.setdefault(run.id, []).append(message)

        data = DataStore(self.home / "data")
        self._pipelines.append(
            Pipeline(
                *(self.store, self.catalogue, data, 1000),
                progress=progress,
                executor=self.executor,
                object_store=self.object_store,
            )
        )
        return self._pipelines[-1]

    def follow(self, runs: Iterable[Run]) -> threading.Thread:
        """Submit runs to the executor, or follow those already submitted, in a thread."""
        thread = threading.Thread(target=self.pipeline().execute, args=(list(runs),), daemon=True)
        thread.start()
        return thread

    def release(self) -> None:
        """Let the agents continue."""
        (self.starts_folder / GO_ON).touch()

    def close(self) -> None:
        """Cancel all runs that are still active."""
        for pipeline in self._pipelines:
            pipeline.cancel()
        self.release()

    def starts(self, run: Run) -> int:
        """Return how often the run's agent was started."""
        path = self.starts_folder / run.id
        return len(path.read_text().split()) if path.exists() else 0

    def agents(self, runs: Iterable[Run]) -> list[psutil.Process]:
        """Return the live processes of the runs' agents."""
        ids, found = {run.id for run in runs}, []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("MLEREDUX_RUN_ID") in ids:
                    found.append(process)
        return found

    def processes(self, runs: Iterable[Run]) -> list[psutil.Process]:
        """Return the live processes of the runs: those that execute them, and their agents."""
        runs = list(runs)
        ids, folders, found = {run.id for run in runs}, {str(run.path) for run in runs}, []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                named = process.environ().get("MLEREDUX_RUN_ID") in ids or not folders.isdisjoint(process.cmdline())
                if named and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def job(self, run: Run) -> str:
        """Return the run's current job."""
        return str(run.ticket.get("job"))

    def status(self, run: Run) -> JobStatus:
        """Return the state of the run's current job."""
        job = self.job(run)
        return self.executor.poll([job])[job]

    def place(self, run: Run) -> str:
        """Return the node on which the run was last seen; empty before it starts."""
        shown = [message.rpartition(": ")[2].rstrip(")") for message in self.said.get(run.id, ()) if "(" in message]
        return next((name for name in reversed(shown) if not name.startswith(("pending", "waiting"))), "")

    def count(self, runs: Iterable[Run]) -> Count:
        """Count runs that were lost or executed twice."""
        done, lost, twice = 0, [], []
        for run in runs:
            events = run.events()
            ends = sum(event.type == "state" and event.data["state"] in ("done", "failed") for event in events)
            begun = sum(event.type == "attempt" and event.data["status"] == "starting" for event in events)
            if run.state == "done" and [event.seq for event in events] == list(range(len(events))):
                done += 1
            else:
                lost.append(run.id)
            if ends > 1 or self.starts(run) > begun:
                twice.append(run.id)
        return Count(done, tuple(lost), tuple(twice))


def until(there: Callable[[], Any], seconds: float = 240, *, poll: float = 0.1) -> Any:
    """Return the result of a condition as soon as it is true.

    Args:
        there: The condition; its first true result is returned.
        seconds: Time limit in seconds.
        poll: Seconds between two calls.

    Raises:
        AssertionError: The condition did not become true in time.
    """
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(poll)
    return found
