"""Where the steps of a run come from."""

from __future__ import annotations

from mleredux.plugin.artifact import Run

from mleredux_view.stepfile import StepFile, steps_of


def trace_of(run: Run) -> StepFile | None:
    """Return the run's rollout; None if there is none yet."""
    return steps_of(run.path)
