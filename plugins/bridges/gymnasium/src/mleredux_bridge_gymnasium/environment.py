"""A task as a Gymnasium environment: an episode is a run, an action is a command, code, or the end of the episode."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from mleredux import MlereduxError, Run
from mleredux.plugin.command import current
from mleredux_agents import OpenSession, exit_on_signals, open_session, opening, rule_of

MAX_TEXT = 24_000
SHELL, PYTHON, SUBMIT = 0, 1, 2
"""Kinds of actions: run the text in `sh`, run it in a new Python, end the episode (the text is ignored)."""
Reward = Callable[[Run], float | None]


class UnicodeText(spaces.Text):
    """A space of texts with any characters; samples use its character set, and flattening replaces all others with
    `?`.
    """

    def contains(self, x: Any) -> bool:
        """Return whether a value is a valid Unicode string that is not too long."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        return x.isascii() or not any("\ud800" <= character <= "\udfff" for character in x)

    def character_index(self, char: str) -> Any:
        """Return the index of a character in the set; that of `?` for other characters."""
        return super().character_index(char if char in self.character_set else "?")


class TaskEnvironment(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """An environment for one or more tasks; each episode runs on one of them.

    The reward is 0 until the end of an episode; `info` then contains `run`, `valid` and `message`, and also `score` and
    `medal`. All rewards except `valid` reveal test scores: the verdict on these runs is `score given`, and leaderboards
    omit them; with `valid`, `info` contains no score either. `validation` reveals nothing about the test data: it is
    `standing` on `TASK+shadow`, whose test rows are held out from the task's training table (`mleredux-techniques`).

    Args:
        task: The id of the task, or several ids: an episode with a seed uses `task[seed % len(task)]`.
        reward: `standing`, `percentile`, `score`, `valid`, `validation`, or a function of a run with a valid submission
            (for example, a function of the steps in its rollout), or its name `package.module:function`.
        invalid: The reward of other runs; None means 0. It is required for `score`.
        sandbox: Id of a sandbox; None for the best available sandbox.
        time_limit: Seconds after which an episode is truncated; None for one hour.
        limits: Other fields of `Limits` to change. Each episode reserves its CPUs and memory.
        slot_timeout: Seconds that `reset` waits while other runs use the machine's CPUs and memory.
        step_timeout: Seconds after which a command is killed.
        runs_dir, data_dir: As in `mleredux.run`.
        render_mode: None, or `ansi`: `render` returns the last observation's text.

    Raises:
        NotFound: A task does not exist.
        MlereduxError: The reward does not exist.
    """

    metadata = {"render_modes": ["ansi"]}

    def __init__(
        self,
        task: str | Sequence[str] = "digits",
        *,
        reward: str | Reward = "standing",
        invalid: float | None = None,
        sandbox: str | None = None,
        time_limit: float | None = None,
        limits: Mapping[str, Any] | None = None,
        step_timeout: float = 60,
        slot_timeout: float = 60,
        runs_dir: Path | str | None = None,
        data_dir: Path | str | None = None,
        render_mode: str | None = None,
    ) -> None:
        names = (task,) if isinstance(task, str) else tuple(task)
        self._shown_by: str | None = "gymnasium"
        if reward == "validation":
            names, reward, self._shown_by = tuple(f"{name}+shadow" for name in names), "standing", None
        self._tasks = [current().task(name) for name in names]
        self.task = self._tasks[0]
        self._rule = rule_of(reward, invalid)
        self._timeout, self.render_mode = step_timeout, render_mode
        self._places: dict[str, Any] = {
            "sandbox": sandbox,
            "time_limit": time_limit,
            "limits": limits,
            "runs_dir": runs_dir,
            "data_dir": data_dir,
            "slot_timeout": slot_timeout,
        }
        text = UnicodeText(MAX_TEXT, min_length=0, charset=string.printable)
        self.action_space = spaces.Dict({"kind": spaces.Discrete(3), "text": text})
        self.observation_space = spaces.Dict({"failed": spaces.Discrete(2), "text": text})
        self._session: OpenSession | None = None
        self._shown = ""
        exit_on_signals()  # resets may be called in other threads

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a run with this seed, and cancel that of an unfinished episode; observe the task description."""
        super().reset(seed=seed)
        self.close()
        drawn = seed if seed is not None else int(self.np_random.integers(2**31))
        self.task = self._tasks[drawn % len(self._tasks)]
        self._session = open_session(self.task.id, "gymnasium", seed=drawn, **self._places)
        return self._observed(opening(self.task, "then submit."), failed=False), {"task": self.task.id}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Execute an action; return its output, and at the end the reward and the submission's validity (`info`)."""
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
        return self._observed(output, failed=failed), reward, kind == SUBMIT, over, self._result()

    def render(self) -> str | None:
        """Return the text of the last observation."""
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
        """Grade the run; return its reward."""
        return self._rule.of(self._opened().finish(), shown_by=self._shown_by)

    def _observed(self, text: str, *, failed: bool) -> dict[str, Any]:
        if self._session is not None:  # make observations equal in all episodes
            text = text.replace(str(self._session.run.path.resolve()), "").replace(str(self._session.run.path), "")
        self._shown = text.encode("utf-8", "replace").decode("utf-8")[:MAX_TEXT]
        return {"failed": int(failed), "text": self._shown}

    def _result(self) -> dict[str, Any]:
        """Return the run of an ended episode, whether its submission is valid, and its score if rewards reveal it."""
        run = self.run
        if not run.state.final or (report := run.report) is None:
            return {}
        facts = {"run": run.id, "valid": report.valid_submission, "message": report.message}
        return facts if self._rule.name == "valid" else {**facts, "score": run.score, "medal": run.medal}


gymnasium.register(
    "mleredux/Task-v0",
    entry_point=f"{__name__}:TaskEnvironment",
    vector_entry_point="mleredux_bridge_gymnasium.vector:TaskVectorEnvironment",
    max_episode_steps=200,
)
