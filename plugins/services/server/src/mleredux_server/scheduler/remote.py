"""Runs of a server on an executor other than its own processes: submitting them, following them to their end, finding
them again."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable

import structlog
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.executor import Node
from mleredux.plugin.host import Machine, Pipeline
from mleredux_executor_nodes.shared import NODE_PROGRAM, RemoteRuns

from mleredux_server.accounts.passed_secrets import keep_values
from mleredux_server.accounts.secrets import secrets_of
from mleredux_server.database.tables import RunRow
from mleredux_server.runs.summary import run_at
from mleredux_server.scheduler import loans
from mleredux_server.scheduler.backlog import write_reasons
from mleredux_server.scheduler.decision import Demand
from mleredux_server.service import Service

_LOG = structlog.get_logger()
_POLL = 0.5
_PAUSE = 5.0
"""Seconds until the next request after the engine refused runs, or did not respond."""
_NODES_SECONDS = 60.0
_MOST = 256
"""Maximum number of runs on the engine, waiting or running, unless it has more CPUs; the server queues the others."""


class Remote:
    """The runs of a server on its executor. Its thread reads runs' directories, sends secrets, and communicates with
    the engine.

    Args:
        service: The service.
        wake: Called when a run has ended.
    """

    def __init__(self, service: Service, wake: Callable[[], None]) -> None:
        self._service, self._wake = service, wake
        self.executor = service.catalogue.executor(service.settings.executor)
        settings = service.settings
        pipeline = Pipeline(
            *(service.store, service.catalogue, service.data),
            base_image=settings.base_image,
            object_store=settings.store,
        )
        self._remote_runs = RemoteRuns(pipeline, self.executor, self._program)
        self._runs: set[str] = set()
        self._borrowers: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._announced: dict[str, str] = {}
        self._new: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._nodes: list[Node] = []
        self._nodes_at = self._again = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="executor", daemon=True)
        self.size = {"run": service.settings.workers or _MOST}

    def start(self) -> None:
        """Start following runs."""
        self._thread.start()

    def close(self) -> None:
        """Stop following runs; their jobs continue, and the next server finds them."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def submit(self, run_id: str) -> None:
        """Execute a run to its end, or follow it if the engine already has it."""
        self._runs.add(run_id)
        self._new.put(run_id)

    def has(self, run_id: str) -> bool:
        """Return whether a run was submitted and has not ended."""
        return run_id in self._runs

    def poll(self) -> list[str]:
        """Return the runs that ended since the last call."""
        ended = []
        while not self._ended.empty():
            ended.append(self._ended.get())
            self._runs.discard(ended[-1])
        return ended

    def machine(self) -> Demand:
        """Return the total resources of the engine's nodes; the last known ones if it does not respond."""
        if time.monotonic() > self._nodes_at + _NODES_SECONDS:
            self._nodes_at = time.monotonic()
            try:
                self._nodes = list(self.executor.nodes())
                self.size["run"] = self._service.settings.workers or max(
                    _MOST, int(sum(node.cpus for node in self._nodes))
                )
            except MlereduxError as error:
                _LOG.warning("the executor does not respond", executor=self.executor.id, reason=str(error))
        return Demand(
            sum(node.cpus for node in self._nodes),
            sum(node.memory_mb for node in self._nodes),
            sum(node.gpus for node in self._nodes),
        )

    def largest(self) -> Machine:
        """Return the largest machine that a run can use."""
        self.machine()
        gpus = max((node.gpus for node in self._nodes), default=0)
        return Machine(
            max((node.cpus for node in self._nodes), default=math.inf),
            max((node.memory_mb for node in self._nodes), default=2**62),
            tuple(map(str, range(gpus))),
        )

    def _follow(self) -> None:
        left: list[str] = []
        while not self._stopping.wait(_POLL):
            while not self._new.empty():
                left.append(self._new.get())
                self._announced[left[-1]] = ""  # an earlier server may have written a reason
            try:
                if time.monotonic() >= self._again:
                    left = self._add(left)
                for run in self._remote_runs.step():
                    if run.id in self._borrowers:
                        self._borrowers.discard(run.id)
                        loans.forget(run.path)
                    self._ended.put(run.id)
                    self._wake()
                self._write_reasons()
                for name in self._borrowers & self._remote_runs.open.keys():
                    self._send_secrets(name, self._remote_runs.open[name].nonce)
            except Exception as error:  # the engine may be restarting, a disk may be full; jobs continue meanwhile
                _LOG.error("runs can't be followed and will be checked again", exc_info=error)
                self._stopping.wait(_PAUSE)

    def _write_reasons(self) -> None:
        """Write why runs on the executor do not continue, for those where it has changed."""
        waiting = {run_id: why for run_id, why in self._refusals.items() if run_id not in self._remote_runs.open}
        waiting |= {run_id: run.problem for run_id, run in self._remote_runs.open.items() if run.problem}
        reasons = dict.fromkeys(self._announced) | waiting
        write_reasons(self._service.database, dict.fromkeys(waiting) | self._announced, reasons, "started")
        self._announced = waiting

    def _program(self, run: Run) -> str:
        """Return the module that executes a run on its node."""
        with self._service.database.reading() as session:
            row = session.get(RunRow, run.id)
            if row is None or not (row.request or {}).get("secrets"):
                return NODE_PROGRAM
        self._borrowers.add(run.id)
        return "mleredux_server.scheduler.node"

    def _send_secrets(self, run_id: str, nonce: str) -> None:
        """Send a run the current values of its secrets, if a process with its current ticket requests them."""
        folder = self._service.job_dir("run", run_id)
        for public in loans.requests(folder, nonce):
            with self._service.database.reading() as session:
                row = session.get(RunRow, run_id)
                secrets = secrets_of(self._service, row, session) if row is not None else {}
            earlier = keep_values(self._service, run_id, secrets.values())
            loans.answer(folder, nonce, public, (secrets, earlier))

    def _add(self, names: list[str]) -> list[str]:
        """Submit runs to the engine; return those that it did not accept, to be tried again."""
        runs, self._refusals = [], {}
        for name in names:
            try:
                runs.append(run_at(self._service.store, name))
            except (MlereduxError, ValueError, OSError):
                self._ended.put(name)  # the dispatcher detects and reports the problem
                self._wake()
        refused = [run.id for run in self._refused(runs)]
        if refused:
            self._again = time.monotonic() + _PAUSE
        for run in runs:
            if run.id not in refused and run.state.final:
                self._ended.put(run.id)
                self._wake()
        return refused

    def _refused(self, runs: list[Run]) -> list[Run]:
        """Submit runs to the engine, one by one if it refuses them together; return those that it did not accept."""
        try:
            self._remote_runs.add(runs)
            return []
        except MlereduxError as error:
            _LOG.warning("the executor refused runs", executor=self.executor.id, runs=len(runs), reason=str(error))
            self._refusals |= dict.fromkeys((run.id for run in runs), error.message)
        with contextlib.suppress(MlereduxError):
            if len(runs) > 1 and self.executor.nodes():  # it responds
                return [run for run in runs if self._stopping.is_set() or self._refused([run])]
        return runs
