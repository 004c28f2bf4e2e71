"""Start agents in a sandbox as the pipeline does, for the sandbox's self-check."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import BuildRequest, Built, Exit, Handle, Launch, Sandbox, Session
from mleredux._core.sandboxes.volume import RunDisk, open_disk
from mleredux._core.stages.briefing import environment, write_briefing
from mleredux._core.stages.prepare import prepare
from mleredux._core.stages.run_agent import make_launch, run_in_sandbox
from mleredux._core.store import RunStore
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux._core.submissions.schema import read_schema
from mleredux.errors import SandboxError
from mleredux.models import Agent, Attempts, Limits, Outcome, RunPlan, Verdict

from mleredux_testing.toys import TOY_PLUGIN, toy_agent, toy_task

_POLL = 0.05
_Value = TypeVar("_Value")


def wait_for(condition: Callable[[], _Value], seconds: float) -> _Value:
    """Call a function until its result is true, for at most this many seconds; return the last result."""
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(_POLL)
    return value


@dataclass
class Started:
    """An agent that was started."""

    launch: Launch
    handle: Handle

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill the agent and close its handle."""
        self.handle.kill()
        self.wait(10)
        self.handle.close()

    def wait(self, seconds: float) -> Exit | None:
        """Return how the agent ended, or None if it is still running after this many seconds."""
        return wait_for(self.handle.poll, seconds)

    def ready(self, seconds: float) -> bool:
        """Return whether the agent's file `ready` appears in time."""
        return wait_for((self.launch.output_dir / "ready").exists, seconds)

    def beats(self) -> dict[str, str]:
        """Return the last output of the agent's processes."""
        return {path.name: path.read_text() for path in self.launch.output_dir.glob("beat-*")}


class Bench:
    """A sandbox with the prepared toy task.

    Attributes:
        verdicts: Validations that agents requested.
        private: The folder of the toy task's answers.
    """

    def __init__(self, sandbox: Sandbox, folder: Path, base_image: str | None, build_limit: float) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.base_image, self.build_limit = base_image or os.environ.get("MLEREDUX_BASE_IMAGE"), build_limit
        self.store = RunStore(folder / "runs")
        self.prepared = prepare(toy_task, Catalogue(load=[TOY_PLUGIN]), DataStore(folder / "data"))
        self.private = self.prepared.private
        self.verdicts: list[Verdict] = []
        self._endpoints: list[ValidationEndpoint] = []
        self._disks: list[RunDisk] = []
        self._built: Built | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_error: object) -> None:
        for endpoint in self._endpoints:
            endpoint.stop()
        for disk in self._disks:
            disk.close()

    def build(self) -> Built:
        """Return the environment of a Python agent."""
        request = BuildRequest(
            toy_agent, self.folder / "build.log", base_image=self.base_image, time_limit=self.build_limit
        )
        self._built = self.sandbox.build(request)
        return self._built

    def launch(
        self,
        name: str,
        program: str = "",
        *,
        options: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        **limits: Any,
    ) -> Launch:
        """Return the input of the sandbox for starting a program."""
        allowed = Limits.model_validate({"memory_mb": 512, "time_limit": 120, **limits})
        agent = Agent(
            id=f"check-{name}", title=name, command=("python", "-c", program), env=env or {}, options=options or {}
        )
        plan = RunPlan(task=toy_task.id, agent=agent.id, sandbox=self.sandbox.id, seed=0, limits=allowed)
        run = self.store.create(plan, self.folder / "data")
        disk = open_disk(run.path, allowed.disk_mb, going_on=False)
        self._disks.append(disk)
        for part in ("code", "logs", "rollout"):
            (run.output_dir / part).mkdir()
        run.agent_log.touch()
        endpoint = ValidationEndpoint(
            run.id,
            read_schema(self.prepared.schema),
            run.output_dir,
            self.verdicts.append,
            lambda: 60.0,
            disk.uploads,
            disk.note_refused,
        )
        endpoint.start()
        self._endpoints.append(endpoint)
        if self._built is None:
            raise SandboxError("Nothing is built yet.")
        public = disk.show(self.prepared.public) or self.prepared.public
        launch = make_launch(run, agent, public, endpoint, disk, built=self._built, owner=self.store.owner)
        layout = self.sandbox.layout(launch)
        write_briefing(run, toy_task, layout, launch.task_dir, self.sandbox.capabilities)
        return replace(launch, env=environment(run, toy_task, agent, launch, layout, {}))

    def start(self, name: str, program: str, **options: Any) -> Started:
        """Start a program."""
        launch = self.launch(name, program, **options)
        return Started(launch, self.sandbox.start(launch))

    def supervise(self, name: str, program: str, **limits: Any) -> tuple[Outcome, Path]:
        """Start a program and supervise it until it ends, as for a run; return the outcome and the output folder."""
        launch = self.launch(name, program, **limits)
        session = Session(Attempts(), emit=lambda _event: None, cancelled=lambda: False, look=lambda: None)
        return run_in_sandbox(launch, session, self.sandbox), launch.output_dir
