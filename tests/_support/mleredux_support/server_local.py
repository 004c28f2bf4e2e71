"""A server in a thread of the test's own process, without scheduler, and runs made by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run
from mleredux.models import Limits, RunPlan
from mleredux_server.accounts.accounts import make_token, make_user
from mleredux_server.accounts.security import Caller
from mleredux_server.app import create_app, make_service
from mleredux_server.database.tables import Job, Project, RunRow, User, now
from mleredux_server.operations.listener import configured
from mleredux_server.runs.summary import facts_of
from mleredux_server.settings import Settings
from mleredux_server.streams.hub import end_streams_with
from sqlalchemy import select, update


class LocalServer:
    """A service that listens on the loopback, in a thread.

    Attributes:
        service: Its insides.
        url: Where it listens.
        token: Of an admin.
    """

    def __init__(self, runs_dir: Path, **settings: Any) -> None:
        made = Settings(runs_dir=runs_dir, port=0, **settings)
        self.service = make_service(made, Catalogue())
        self.service.data = DataStore(made.data_dir or runs_dir.parent / "data")
        self.app = create_app(self.service)
        self.server = uvicorn.Server(configured(self.app, port=0, lifespan="off"))
        end_streams_with(self.server, self.app)
        self.url = ""
        self.token = self.user("admin", admin=True, scopes=["admin"])

    @contextmanager
    def running(self) -> Iterator[LocalServer]:
        """Listen while the context lasts."""
        thread = threading.Thread(target=self.server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 60
        while not self.server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The server did not start.")
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.server.should_exit = True
            thread.join(10)
            self.service.database.close()

    def user(self, name: str, *, admin: bool = False, scopes: list[str] | None = None) -> str:
        """Make a user; their token."""
        with self.service.database.writing() as session:
            user = make_user(session, name, admin=admin)
            return make_token(session, user, "test", scopes or ["read", "run", "grade"])[1]

    def other_token(self, name: str) -> str:
        """Another token of a user."""
        with self.service.database.writing() as session:
            user = session.scalars(select(User).where(User.name == name)).one()
            return make_token(session, user, "other", ["read"])[1]

    def caller(self, name: str) -> Caller:
        """A user as the code sees them."""
        with self.service.database.reading() as session:
            user = session.scalars(select(User).where(User.name == name)).one()
            project = session.scalars(select(Project).where(Project.name == name)).one()
        scopes = frozenset(["admin"] if user.admin else ["read", "run", "grade"])
        return Caller(user.id, name, user.admin, "tok_test", scopes, {project.id: "owner"})

    def make_run(self, *, agent: str = "dummy", task: str = "digits", user: str = "admin", **asked: Any) -> Run:
        """A run that somebody works on: its directory, and its rows."""
        fields: dict[str, Any] = {
            "sandbox": "process",
            "task": task,
            "agent": agent,
            "seed": 0,
            "limits": Limits(),
            **asked,
        }
        store, plan = self.service.store, RunPlan.model_validate(fields)
        run = store.create(plan, self.service.data.path, store.new_id(task, agent, 12))
        self.adopt(run, user)
        return run

    def adopt(self, run: Run, user: str = "admin") -> None:
        """Give a user a run of the store that the database does not have."""
        facts, spec = facts_of(run), run.spec
        with self.service.database.writing() as session:
            owner = session.scalars(select(User).where(User.name == user)).one()
            project = session.scalars(select(Project).where(Project.name == user)).one()
            both: dict[str, Any] = {"id": run.id, "project_id": project.id, "user_id": owner.id}
            names = {"task", "agent", "sandbox", "seed", "network", "options", "arm", "limits"}
            session.add(Job(**both, kind="run", state="ended" if facts.state.final else "started"))
            told = {**spec.model_dump(mode="json", include=names), **facts.columns(), "created_at": spec.created_at}
            session.add(RunRow(**both, **told, labels={}, request={}, experiment_id=spec.experiment))

    def execute(self, run: Run) -> Run:
        """Bring a run to its end, and settle it."""
        Pipeline(self.service.store, self.service.catalogue, self.service.data).execute([run])
        self.settle(run.id, str(run.state))
        return run

    def settle(self, run_id: str, status: str) -> None:
        """As the scheduler does when a run is over."""
        with self.service.database.writing() as session:
            session.execute(update(RunRow).where(RunRow.id == run_id).values(status=status, ended_at=now()))
            session.execute(update(Job).where(Job.id == run_id).values(state="ended", ended_at=now()))
