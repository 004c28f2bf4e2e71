"""A task as an OpenEnv environment: an episode is a run, an action is a command, code, or the end of the episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mleredux import MlereduxError
from mleredux.plugin.command import current
from mleredux_agents import OpenSession, open_session, opening, rule_of
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field


class TaskAction(Action):
    """The action of a step."""

    kind: Literal["shell", "python", "submit"]
    text: str = Field(default="", description="The command or code; empty for `submit`.")


class TaskObservation(Observation):
    """The output of a step, and at the end whether the submission is valid."""

    text: str = ""
    failed: bool = False
    valid: bool | None = None
    message: str | None = None


class TaskEnvironment(Environment[TaskAction, TaskObservation, State]):
    """An environment for one or more tasks.

    The reward is returned at the end of an episode. All rewards except `valid` reveal test scores: the verdict on these
    runs is `score given`, and leaderboards omit them.

    Args:
        tasks: Ids of tasks to choose from in `reset`; the first is the default.
        reward: `standing`, `percentile`, `score` or `valid`.
        invalid: The reward of a run without a valid submission; None means 0. It is required for `score`.
        places: The arguments `sandbox`, `time_limit`, `limits`, `runs_dir` and `data_dir` of `open_session`.
        step_timeout: Seconds after which a command is killed.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        tasks: Sequence[str],
        *,
        reward: str = "standing",
        invalid: float | None = None,
        places: Mapping[str, Any] | None = None,
        step_timeout: float = 600,
    ) -> None:
        super().__init__()
        self._tasks, self._rule, self._timeout = tuple(tasks), rule_of(reward, invalid), step_timeout
        self._places = dict(places or {})
        self._session: OpenSession | None = None
        self._steps = 0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, *, task: str | None = None, **kwargs: Any
    ) -> TaskObservation:
        """Start a run, and cancel that of an unfinished episode; return the description as observation.

        Raises:
            MlereduxError: The task is not served, or there are unknown arguments.
        """
        if kwargs:
            raise MlereduxError(f"reset has no argument {next(iter(kwargs))!r}.", hint="Use seed and task.")
        chosen = task or self._tasks[0]
        if chosen not in self._tasks:
            raise MlereduxError(f"Task {chosen!r} is not served here.", hint=f"Available: {', '.join(self._tasks)}.")
        self.close()
        self._steps = 0
        self._session = open_session(chosen, "openenv", seed=seed or 0, **self._places)
        return self._observed(opening(current().task(chosen), "then submit."))

    def step(self, action: TaskAction, timeout_s: float | None = None, **kwargs: Any) -> TaskObservation:
        """Execute an action; return its output, and at the end the reward.

        Raises:
            MlereduxError: There is no open episode, or the sandbox failed.
        """
        session = self._session
        if session is None or session.run.state.final:
            raise MlereduxError("There is no open episode.", hint="Call reset first.")
        self._steps += 1
        if action.kind == "submit":
            return self._end(session)
        try:
            language = "sh" if action.kind == "shell" else "python"
            ended = session.execute(action.text, language=language, timeout=timeout_s or self._timeout)
        except MlereduxError:  # the time is over
            if session.open:
                raise
            return self._end(session)
        return self._observed(ended.output, failed=ended.code != 0)

    @property
    def state(self) -> State:
        """The id of the episode's run, and the number of steps so far."""
        return State(episode_id=None if self._session is None else self._session.run.id, step_count=self._steps)

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the names of the tasks."""
        return EnvironmentMetadata(name="mleredux", description=f"Machine-learning tasks: {', '.join(self._tasks)}.")

    def close(self) -> None:
        """Cancel the run of an episode that has not ended."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _end(self, session: OpenSession) -> TaskObservation:
        """Grade the run."""
        run = session.finish()
        reward, report = self._rule.of(run, shown_by="openenv"), run.report
        return TaskObservation(
            done=True,
            reward=reward,
            valid=report is not None and report.valid_submission,
            message=run.message if report is None else report.message,
        )

    def _observed(self, text: str, *, failed: bool = False) -> TaskObservation:
        if self._session is not None:  # make observations equal in all episodes
            text = text.replace(str(self._session.run.path.resolve()), "").replace(str(self._session.run.path), "")
        return TaskObservation(text=text, failed=failed)
