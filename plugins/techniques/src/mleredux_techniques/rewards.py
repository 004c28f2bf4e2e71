"""Rewards for bridges: `reward="mleredux_techniques.rewards:technique_use"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Run


def technique_use(run: Run) -> float | None:
    """Return the reward of `mleredux runs techniques`, from 0 to 1, for a graded run of a competition.

    Returns:
        The reward; None if no program of the run declares a switch.

    Raises:
        MlereduxError: The run is a technique run, has no valid submission, or its data has no table.
    """
    from mleredux.plugin.command import DataStore

    from mleredux_techniques.usage.command import use_of

    return use_of(run, DataStore(run.spec.data_dir)).reward
