"""The taskset: each pair of task and seed is one of its tasks; a rollout is a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import verifiers.v1 as vf
from mleredux import Run, grade, prepare
from mleredux.plugin.command import current
from mleredux_agents import OpenSession, fair_share, open_session, opening, rule_of, solution_of

from mleredux_bridge_verifiers.state import RunState
from mleredux_bridge_verifiers.toolset import SandboxTools

_open: dict[str, OpenSession] = {}
"""Sessions by the ids of their traces."""
_runtimes: dict[str, str] = {}
"""Ids of traces by the names of their runtimes, until the session is used."""
_OPENERS = ThreadPoolExecutor(thread_name_prefix="open")
"""Threads that wait for resources on the machine, separate from those that free resources by ending sessions."""


class MlereduxTaskConfig(vf.TaskConfig):
    """Rewards of rollouts, and where they run."""

    reward: str = "standing"
    """`standing` (0.1 to 1), `percentile` (0 to 1), `score` (negated if lower is better) or `valid` (1)."""
    invalid: float | None = None
    """The reward of a run without a valid submission; None means 0. It is required for `score`."""
    sandbox: str | None = None
    """Id of a sandbox; None for the best available sandbox."""
    time_limit: float | str | None = None
    """Time limit in seconds, or `30m`, `2h`; None for the default of one hour."""
    concurrent: int | None = None
    """Number of rollouts at once that share this machine equally; None: each takes one CPU and 4 GB."""
    runs_dir: str | None = None
    data_dir: str | None = None


class MlereduxTasksetConfig(vf.TasksetConfig):
    """The tasks, and the number of seeds of each."""

    tasks: list[str] = ["digits"]
    seeds: int = 1
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()
    """Where the process of all rollouts' tools runs: on this machine, which has the sandbox."""
    task: MlereduxTaskConfig = MlereduxTaskConfig()


class MlereduxData(vf.TaskData):
    """A task and a seed."""

    task: str
    seed: int


class MlereduxTask(vf.Task[MlereduxData, RunState, MlereduxTaskConfig]):
    """A mleredux task: a rollout uses tools in the sandbox of a run, which is graded at the end."""

    @property
    def key(self) -> str:
        """The task and the seed."""
        return f"{self.data.task}-seed-{self.data.seed}"

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Return whether the solution has the best possible score (`vf-validate`); None if there is no solution.

        Ends the session first: it is not used, and other tasks may be waiting for its share of the machine.
        """
        _open.pop(_runtimes.pop(runtime.name)).close()
        return await asyncio.to_thread(self._solution_is_best)

    def _solution_is_best(self) -> bool | None:
        task, data_dir = current().task(self.data.task), self.config.data_dir
        solution = solution_of(task, prepare(task.id, data_dir=data_dir).public.parent)
        if solution is None:
            return None
        with TemporaryDirectory() as folder:
            path = Path(folder) / task.submission.file
            path.write_bytes(solution)
            return rule_of("standing").of_report(grade(path, task.id, data_dir=data_dir)) == 1

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Prepare the task and open the session of a run."""
        opened = partial(
            open_session,
            self.data.task,
            "verifiers",
            sandbox=self.config.sandbox,
            seed=self.data.seed,
            time_limit=self.config.time_limit,
            limits=fair_share(self.config.concurrent) if self.config.concurrent else None,
            runs_dir=self.config.runs_dir,
            data_dir=self.config.data_dir,
        )
        session = await asyncio.get_running_loop().run_in_executor(_OPENERS, opened)
        _open[trace.id], _runtimes[runtime.name] = session, trace.id
        trace.state.run = str(session.run.path.resolve())
        trace.info["run"] = session.run.id

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """End the session and grade it; if no model replied at all, the run is cancelled."""
        _runtimes.pop(runtime.name, None)
        await asyncio.to_thread(_finished, trace)

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the reward of the run according to the configured rule."""
        run = await asyncio.to_thread(_finished, trace)
        return rule_of(self.config.reward, self.config.invalid).of(run, shown_by="verifiers")

    @vf.metric
    async def valid(self, trace: vf.Trace) -> float:
        """Return 1 for a valid submission, else 0."""
        run = await asyncio.to_thread(_finished, trace)
        return rule_of("valid").of(run)


def _finished(trace: vf.Trace) -> Run:
    """Return the run of a rollout, after ending its session."""
    session = _open.get(trace.id)
    if session is None:
        return Run(Path(trace.state.run))
    run = session.finish()
    _open.pop(trace.id, None)
    return run


class MlereduxTaskset(vf.Taskset[MlereduxTask, MlereduxTasksetConfig]):
    """Our tasks, by id, each with its seeds."""

    @classmethod
    def toolsets(cls, config: MlereduxTasksetConfig) -> list[vf.Toolset]:
        """Return the tools of the sandbox, in one process for all rollouts."""
        return [SandboxTools(config.tools)]

    def load(self) -> Iterator[MlereduxTask]:
        """Yield the tasks, seed by seed.

        Raises:
            MlereduxError: A task or the reward does not exist.
        """
        rule_of(self.config.task.reward, self.config.task.invalid)
        for name in self.config.tasks:
            task = current().task(name)
            prompt = opening(task, "and say that you are done when it exists.")
            for seed in range(self.config.seeds):
                yield MlereduxTask(MlereduxData(name=task.id, prompt=prompt, task=task.id, seed=seed), self.config.task)
