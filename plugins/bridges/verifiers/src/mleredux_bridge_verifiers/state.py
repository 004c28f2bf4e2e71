"""What the task and its tools share: where the run of a rollout is."""

from __future__ import annotations

import verifiers.v1 as vf


class RunState(vf.State):
    """The folder of the run, once its session is open."""

    run: str = ""
