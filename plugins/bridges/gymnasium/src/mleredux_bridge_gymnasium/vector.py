"""Run many environments concurrently: resets and steps in threads, programs in separate processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import TimeLimit
from mleredux_agents import fair_share

from mleredux_bridge_gymnasium.environment import TaskEnvironment


class _Ahead(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose next result may be computed in another thread."""

    _result: Future[Any] | None = None

    def begin(self, pool: ThreadPoolExecutor, name: str, *arguments: Any, **named: Any) -> None:
        """Start `reset` or `step` in a thread; the next call of that method returns the result."""
        self._result = pool.submit(getattr(self.env, name), *arguments, **named)

    def reset(self, **named: Any) -> Any:
        """Reset the environment, or return the result of the reset under way."""
        return self._taken() if self._result else self.env.reset(**named)

    def step(self, action: Any) -> Any:
        """Step the environment, or return the result of the step under way."""
        return self._taken() if self._result else self.env.step(action)

    def _taken(self) -> Any:
        result, self._result = self._result, None
        assert result is not None
        return result.result()


class TaskVectorEnvironment(SyncVectorEnv):
    """Environments for tasks that are reset and stepped together.

    They mostly wait for programs in sandboxes, so threads are as fast as the processes of `AsyncVectorEnv`, each of
    which would import everything again. After the end of an episode, the next step resets the environment.

    Args:
        num_envs: The number of environments.
        workers: Maximum number of concurrent resets or steps; None for the number of CPUs.
        max_episode_steps: Number of steps after which an episode is truncated without a grade.
        limits: As in `TaskEnvironment`; without CPUs and memory, each environment gets an equal share of this machine.
        others: Other arguments of `TaskEnvironment`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        workers: int | None = None,
        max_episode_steps: int = 200,
        limits: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        make = partial(TaskEnvironment, limits={**fair_share(num_envs), **(limits or {})}, **others)
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="environment")
        self._ahead = [_Ahead(TimeLimit(make(), max_episode_steps)) for _ in range(num_envs)]
        super().__init__([lambda env=env: env for env in self._ahead])  # type: ignore[misc]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`, as `SyncVectorEnv` does."""
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + n for n in range(self.num_envs)]
        mask = (options or {}).get("reset_mask", [True] * self.num_envs)
        for env, own, wanted in zip(self._ahead, seeds, mask, strict=True):
            if wanted:
                env.begin(self._pool, "reset", seed=own)
        return super().reset(seed=seeds, options=options)

    def step(self, actions: Any) -> Any:
        """Step all environments; those whose episode has ended are reset."""
        assert self.autoreset_mode == AutoresetMode.NEXT_STEP
        for env, action, over in zip(
            self._ahead, iterate(self.action_space, actions), self._autoreset_envs, strict=True
        ):
            env.begin(self._pool, "reset") if over else env.begin(self._pool, "step", action)
        return super().step(actions)

    def close_extras(self, **named: Any) -> None:
        """Cancel the runs of unfinished episodes, even during a step."""
        with ThreadPoolExecutor(self.num_envs) as closing:
            list(closing.map(lambda env: env.close(), self.envs))
        self._pool.shutdown()
