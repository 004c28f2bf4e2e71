"""State shared by the task and its tools: the folder of a rollout's run."""

from __future__ import annotations

import verifiers.v1 as vf


class RunState(vf.State):
    """The folder of the run, once its session is open."""

    run: str = ""
