"""The runs that a user may see, as a source for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import FINAL, Run
from mleredux.plugin.page import StoredExperiment
from mleredux_view.shared import Launch, RunQuery, RunTable, version_of

from mleredux_server.accounts.security import Caller
from mleredux_server.files.manifest import MANIFEST
from mleredux_server.files.masks import Masks
from mleredux_server.operations.places import hide_folders
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.changes import change_run
from mleredux_server.runs.deadlines import submitted
from mleredux_server.runs.lookup import Listed, SeenRun, listed, run_of
from mleredux_server.runs.references import pin_agent
from mleredux_server.runs.requests import make_runs, plan_run
from mleredux_server.scheduler.actions import cancel_runs, retry_run
from mleredux_server.schemas.body import checked
from mleredux_server.schemas.runs import RunChange, RunRequest
from mleredux_server.service import Service
from mleredux_server.web.experiments import stored_experiments
from mleredux_server.web.table import run_table, version_of_runs

_HINT = "Change it."


class ServerSource:
    """The runs of the projects that a user is a member of; all runs for an admin.

    Args:
        masks: The masks for secrets that agents received.
    """

    def __init__(self, service: Service, caller: Caller, masks: Masks) -> None:
        self.service, self.caller, self._masks = service, caller, masks
        self._rows: list[str] = []
        self._known: dict[str, Listed] = {}

    @property
    def place(self) -> str:
        """The owner of these runs, for display."""
        return self.caller.user_name

    @property
    def folder(self) -> Path | None:
        """Return None: users do not see the directory as a whole."""
        return None

    @property
    def data_dir(self) -> Path | None:
        """The folder of the server's prepared data."""
        self.caller.require("read")
        return self.service.data.path

    def shown(self, page: str) -> str:
        """Remove paths of the server's folders from a page."""
        folders = (self.service.settings.runs_dir.absolute(), self.service.data.path.absolute())
        return hide_folders(*folders, *(Path(escape(str(folder))) for folder in folders))(page)

    def runs(self, query: RunQuery) -> RunTable:
        """Return the runs that match."""
        self.caller.require("read")
        with self.service.database.reading() as session:
            table = run_table(session, self.caller, query)
        self._rows += (row["id"] for row in table.rows)
        return table

    def run(self, run_id: str) -> Run:
        """Return a run, unless it belongs to another user, or contains secrets of its agent that are not masked yet.

        Raises:
            NotFound: The user can see no such run.
            MlereduxError: Its agent received secrets, which are masked in its files only at its end.
        """
        seen = self._seen(run_id)
        ended = seen.ended and seen.status in FINAL and (seen.path / MANIFEST).is_file()
        if not ended and self._masks.of(seen):
            raise MlereduxError(
                f"The agent of run {run_id} received secrets, which are masked in its files after it has ended.",
                hint=f"Until then, `mleredux logs {run_id} --follow` shows its log with secrets masked.",
            )
        return Run(seen.path)

    def experiments(self, experiment: str | None = None) -> list[StoredExperiment]:
        """Return the newest experiments of the user's projects, or the one with this id."""
        self.caller.require("read")
        return stored_experiments(self.service, self.caller, experiment)

    def submissions(self) -> list[dict[str, Any]]:
        """Return people's submissions to technique tasks."""
        self.caller.require("read")
        return submitted(self.service, self.caller)

    def version(self, run_id: str | None = None) -> str:
        """Return a string that changes whenever the run does or, without an id, whenever any run does."""
        if run_id is not None:
            return version_of(self._seen(run_id).path)
        self.caller.require("read")
        with self.service.database.reading() as session:
            return version_of_runs(session, self.caller)

    def stop(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Cancel runs."""
        for run_id in self._changed(run_ids):
            known = cancel_runs(self.service, self.caller, [run_id], run_id)
            yield f"Asked {run_id} to stop." if known else f"{run_id} has already ended."

    def retry(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Resume runs that did not fail because of their agent; request the others again."""
        for run_id in self._changed(run_ids):
            try:
                answer = retry_run(self.service, self.caller, run_id)
                yield f"Requested {run_id} again." if answer.status == 201 else f"Resumed {run_id}."
            except Problem as problem:
                yield problem.detail

    def launch(self, form: Launch) -> Iterator[str]:
        """Request runs in the user's own project."""
        self.caller.require("run")
        limits = {} if form.time_limit is None else {"time_limit": form.time_limit}
        how: dict[str, Any] = {"task": form.task, "options": form.options, "sandbox": form.sandbox, "limits": limits}
        agent = pin_agent(self.service, self.caller, form.agent, form.options)
        requests = [checked(RunRequest, _HINT, **how, agent=agent, seed=seed) for seed in form.seeds]
        planned = [plan_run(self.service, request) for request in requests]
        for row in make_runs(self.service, self.caller, planned, requests[0]):
            yield row.id

    def label(self, run_ids: Iterable[str], name: str, value: str) -> Iterator[str]:
        """Set a label of runs, or remove it if the value is empty."""
        change = checked(RunChange, _HINT, labels={name: value or None})
        for run_id in self._changed(run_ids):
            change_run(self.service, self.caller, run_id, change)
            yield f"{'Labeled' if value else 'Removed the label of'} {run_id}."

    def columns(self) -> Mapping[str, Any]:
        """Return the user's name, and the pages that exist only on this site."""
        return {
            "where": self.caller.user_name,
            "user": self.caller.user_name,
            "own_menu": [("/server", "Server", ["server"])],
        }

    def _changed(self, run_ids: Iterable[str]) -> Iterator[str]:
        self.caller.require("run")
        for run_id in run_ids:
            self._seen(run_id)
            yield run_id

    def _seen(self, run_id: str) -> SeenRun:
        self.caller.require("read")
        if run_id in self._rows:  # a page that opens one of these rows usually opens the others too
            self._known, self._rows = self._known | listed(self.service, self._rows), []
        return run_of(self.service, self.caller, run_id, self._known)
