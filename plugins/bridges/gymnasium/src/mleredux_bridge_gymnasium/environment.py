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
from mleredux_agents import OpenSession, open_session, rule_of

MAX_TEXT = 24_000
SHELL, PYTHON, SUBMIT = 0, 1, 2
"""Kinds of actions: run the text in `sh`, run it in a new Python, end the episode (the text is ignored)."""
_HOW = """\
Commands and code run in your own folder; the data is in $MLEREDUX_DATA_DIR (`os.environ` in Python). Write {file}
there, then submit.

"""
Reward = Callable[[Run], float | None]


class UnicodeText(spaces.Text):
    """Texts of any characters; samples have those of its set, and in flattened texts others are `?`."""

    def contains(self, x: Any) -> bool:
        """Whether it is a text of Unicode, and not too long."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        return x.isascii() or not any("\ud800" <= character <= "\udfff" for character in x)

    def character_index(self, char: str) -> Any:
        """The index of a character in the set; that of `?` for one that is not in it."""
        return super().character_index(char if char in self.character_set else "?")


class TaskEnvironment(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """An environment on one task, or on several of which an episode has one.

    The reward is given at the end of an episode and 0 before; `info` then has `run`, `valid` and `message`, and `score`
    and `medal` too. All rewards but `valid` reveal test scores: the verdict on these runs is `score given`, and
    leaderboards leave them out; with `valid`, `info` has no score either. `validation` reveals nothing of the test: it
    is `standing` on `TASK+shadow`, whose test is rows held back from the task's training table (`mleredux-techniques`).

    Args:
        task: The id of the task, or several: an episode with a seed is on `task[seed % len(task)]`.
        reward: `standing`, `percentile`, `score`, `valid`, `validation`, or a function of a run with a valid submission
            (say, of the steps in its rollout), as it is or by its name, `package.module:function`.
        invalid: The reward of other runs; None: 0. `score` requires one.
        sandbox: Id of a sandbox; None: the best one here.
        time_limit: Seconds after which an episode is truncated; None: an hour.
        limits: Other fields of `Limits` to change. Each episode holds its CPUs and memory.
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
        return self._rule.of(self._opened().finish(), shown_by=self._shown_by)

    def _observed(self, text: str, *, failed: bool) -> dict[str, Any]:
        if self._session is not None:  # the same in each episode
            text = text.replace(str(self._session.run.path.resolve()), "").replace(str(self._session.run.path), "")
        self._shown = text.encode("utf-8", "replace").decode("utf-8")[:MAX_TEXT]
        return {"failed": int(failed), "text": self._shown}

    def _told(self) -> dict[str, Any]:
        """The run of an ended episode, whether its submission is valid, and its score if the rewards reveal it."""
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
