"""Start agents in a sandbox as the pipeline does, for the sandbox's self-check."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import BuildRequest, Built, Exit, Handle, Launch, Sandbox
from mleredux._core.sandboxes.supervise import Watch, supervise
from mleredux._core.sandboxes.volume import RunDisk, find_disk, open_disk
from mleredux._core.stages.briefing import environment, write_briefing
from mleredux._core.stages.prepare import prepare
from mleredux._core.store import RunStore
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux._core.submissions.schema import read_schema
from mleredux.errors import SandboxError
from mleredux.models import Agent, Limits, Outcome, RunPlan, Verdict

from mleredux_testing.toys import TOY_PLUGIN, toy_agent, toy_task

_POLL = 0.05


@dataclass
class Started:
    """An agent that was started."""

    launch: Launch
    handle: Handle

    def wait(self, seconds: float) -> Exit | None:
        """Return how the agent ended, or None if it is still running after this many seconds."""
        until = time.monotonic() + seconds
        while (ended := self.handle.poll()) is None and time.monotonic() < until:
            time.sleep(_POLL)
        return ended

    def ready(self, seconds: float) -> bool:
        """Return whether the agent's file `ready` appears in time."""
        until = time.monotonic() + seconds
        while not (self.launch.output_dir / "ready").exists():
            if time.monotonic() > until:
                return False
            time.sleep(_POLL)
        return True

    def beats(self) -> dict[str, str]:
        """Return the last output of the agent's processes."""
        return {path.name: path.read_text() for path in self.launch.output_dir.glob("beat-*")}

    def end(self) -> None:
        """Kill the agent and close its handle."""
        self.handle.kill()
        self.wait(10)
        self.handle.close()


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
        asked = Limits.model_validate({"memory_mb": 512, "time_limit": 120, **limits})
        agent = Agent(
            id=f"check-{name}", title=name, command=("python", "-c", program), env=env or {}, options=options or {}
        )
        plan = RunPlan(task=toy_task.id, agent=agent.id, sandbox=self.sandbox.id, seed=0, limits=asked)
        run = self.store.create(plan, self.folder / "data")
        disk = open_disk(run.path, asked.disk_mb, going_on=False)
        self._disks.append(disk)
        folders = {"task": run.path / "task", "control": run.path / ".control"}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
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
        launch = Launch(
            run_id=run.id,
            owner=self.store.owner,
            agent=agent,
            built=self._built,
            command=agent.command,
            limits=asked,
            network="none",
            task_dir=folders["task"].resolve(),
            data_dir=(disk.show(self.prepared.public) or self.prepared.public).resolve(),
            output_dir=run.output_dir.resolve(),
            scratch_dir=disk.scratch.resolve(),
            control_dir=folders["control"].resolve(),
            staging_dir=disk.staging.resolve(),
            log=run.agent_log.resolve(),
            validate_socket=endpoint.socket,
            validate_url=endpoint.url,
        )
        layout = self.sandbox.layout(launch)
        write_briefing(run, toy_task, layout, folders["task"], self.sandbox.capabilities)
        return replace(launch, env=environment(run, toy_task, agent, launch, layout, {}))

    def start(self, name: str, program: str, **given: Any) -> Started:
        """Start a program."""
        launch = self.launch(name, program, **given)
        return Started(launch, self.sandbox.start(launch))

    def supervise(self, name: str, program: str, **limits: Any) -> tuple[Outcome, Path]:
        """Start a program and supervise it until it ends, as for a run; return the outcome and the output folder."""
        started = self.start(name, program, **limits)
        launch = started.launch
        disk = find_disk(launch.control_dir.parent)
        watch = Watch(
            folders=disk.counted,
            disk=disk,
            notice=launch.task_dir / "notice.txt",
            emit=lambda *_, **__: None,
            cancelled=lambda: False,
        )
        try:
            return supervise(started.handle, launch.limits, watch), launch.output_dir
        finally:
            started.handle.close()
