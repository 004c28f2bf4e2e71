"""A task as a Gymnasium environment: an episode is a run, an action a command, code, or the end."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from mleredux import MlereduxError, Run
from mleredux.plugin.command import current
from mleredux_agents import OpenSession, open_session, reward_of, rule_of

CHARACTERS = string.printable
"""Characters of texts in both spaces; others are shown as `?`."""
MAX_TEXT = 24_000
SHELL, PYTHON, SUBMIT = 0, 1, 2
"""Kinds of actions: run the text in `sh`, run it in a new Python, end the episode (the text is ignored)."""
_HOW = """\
Commands and code run in a folder of your own; the data is in $MLEREDUX_DATA_DIR (`os.environ` in Python). Write {file}
there, then submit.

"""
Reward = Callable[[Run], float]


class TaskEnvironment(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """An environment on one task, or on several of which an episode has one.

    The reward is given at the end of an episode and 0 before. `score` and `percentile` reveal test scores: runs that do
    so are marked by a warning in their events, and don't belong on leaderboards. `validation` does not: episodes are on
    `TASK+shadow`, whose test is rows held back from the task's training table (`mleredux-techniques` has it).

    Args:
        task: The id of the task, or several: an episode with a seed is on `task[seed % len(task)]`.
        reward: `score`, `percentile`, `valid`, `validation`, or a function of the ended run (say, of the steps in its
            rollout), as it is or by its name, `package.module:function`.
        invalid: The reward of a submission without a value by that rule.
        sandbox: Id of a sandbox; None: the best one here.
        limits: Fields of `Limits` to change; an episode is truncated at `time_limit`. Each holds its CPUs and memory.
        slot_timeout: Seconds that `reset` waits where other runs hold the machine's CPUs and memory.
        step_timeout: Seconds after which a command is killed.
        runs_dir, data_dir: As in `mleredux.run`.
        render_mode: None, or `ansi`: `render` returns the last observation's text.

    Raises:
        NotFound: There is no such task.
        MlereduxError: There is no such rule.
    """

    metadata = {"render_modes": ["ansi"]}

    def __init__(
        self,
        task: str | Sequence[str] = "digits",
        *,
        reward: str | Reward = "score",
        invalid: float = -1.0,
        sandbox: str | None = None,
        limits: Mapping[str, Any] | None = None,
        step_timeout: float = 60,
        slot_timeout: float = 60,
        runs_dir: Path | str | None = None,
        data_dir: Path | str | None = None,
        render_mode: str | None = None,
    ) -> None:
        names = (task,) if isinstance(task, str) else tuple(task)
        self._told_by: str | None = "gymnasium"
        if reward == "validation":
            names, reward, self._told_by = tuple(f"{name}+shadow" for name in names), "score", None
        self._tasks = [current().task(name) for name in names]
        self.task = self._tasks[0]
        if isinstance(reward, str):
            rule_of(reward)
        self._rule = reward
        self._invalid, self._timeout, self.render_mode = invalid, step_timeout, render_mode
        self._places: dict[str, Any] = {
            "sandbox": sandbox,
            "limits": limits,
            "runs_dir": runs_dir,
            "data_dir": data_dir,
            "slot_timeout": slot_timeout,
        }
        text = spaces.Text(MAX_TEXT, min_length=0, charset=CHARACTERS)
        self.action_space = spaces.Dict({"kind": spaces.Discrete(3), "text": text})
        self.observation_space = spaces.Dict({"failed": spaces.Discrete(2), "text": text})
        self._session: OpenSession | None = None
        self._shown = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a run with this seed, and cancel that of an episode which has not ended; observe the description."""
        super().reset(seed=seed)
        self.close()
        drawn = seed if seed is not None else int(self.np_random.integers(2**31))
        self.task = self._tasks[drawn % len(self._tasks)]
        self._session = open_session(self.task.id, "gymnasium", seed=drawn, **self._places)
        how = _HOW.format(file=self.task.submission.file)
        return self._observed(how + self.task.describe(), failed=False), {"task": self.task.id}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carry out an action: its output, and at the end the reward, and whether the submission is valid (`info`)."""
        session = self._opened()
        kind, over = int(action["kind"]), False
        output, failed = "", False
        if kind != SUBMIT:
            try:
                language = "python" if kind == PYTHON else "sh"
                ended = session.execute(str(action["text"]), language=language, timeout=self._timeout)
                output, failed = ended.output, ended.code != 0
            except MlereduxError:  # the time is over
                over = not session.open
                if not over:
                    raise
        reward = self._end() if kind == SUBMIT or over else 0.0
        return self._observed(output, failed=failed), reward, kind == SUBMIT, over, self._told()

    def render(self) -> str | None:
        """The text of the last observation."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Cancel the run of an episode that has not ended."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def run(self) -> Run:
        """The run of this episode."""
        return self._opened().run

    @property
    def time_left(self) -> float:
        """Seconds until the episode is truncated."""
        return self._opened().time_left()

    def _opened(self) -> OpenSession:
        if self._session is None:
            raise gymnasium.error.ResetNeeded("Call reset first.")
        return self._session

    def _end(self) -> float:
        """Have the run graded; its reward."""
        run = self._opened().finish()
        told = self._rule
        reward = reward_of(run, told, told_by=self._told_by) if isinstance(told, str) else told(run)
        return self._invalid if reward is None else float(reward)

    def _observed(self, text: str, *, failed: bool) -> dict[str, Any]:
        if self._session is not None:  # the same in each episode
            text = text.replace(str(self._session.run.path.resolve()), "").replace(str(self._session.run.path), "")
        shown = "".join(character if character in CHARACTERS else "?" for character in text)
        self._shown = shown[:MAX_TEXT]
        return {"failed": int(failed), "text": self._shown}

    def _told(self) -> dict[str, Any]:
        """Whether the submission of an ended episode is valid, and why not."""
        report = self.run.report if self.run.state.final else None
        return {} if report is None else {"valid": report.valid_submission, "message": report.message}


gymnasium.register(
    "mleredux/Task-v0",
    entry_point=f"{__name__}:TaskEnvironment",
    vector_entry_point="mleredux_bridge_gymnasium.vector:TaskVectorEnvironment",
    max_episode_steps=200,
)
