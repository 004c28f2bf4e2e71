"""Graders by direction: similarities, whose best score is 1, and distances, whose best score is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mleredux.plugin.grader import Grader, Score
from mleredux_tables import Options, Rows, define

OptionsT = TypeVar("OptionsT", bound=Options)
PredictionsT = TypeVar("PredictionsT")
Read = Callable[[Rows, OptionsT], PredictionsT]
Scored = Callable[[Rows, PredictionsT, OptionsT], float | Score]


def similarity(
    id: str,
    title: str,
    read: Read[OptionsT, PredictionsT],
    score: Scored[PredictionsT, OptionsT],
    *,
    options: type[OptionsT],
    **further: Any,
) -> Grader:
    """Define a grader whose score is to be maximized, and is 1 for perfect predictions; see `define`."""
    return define(id, title, "maximize", read, score, options=options, perfect=1.0, **further)


def distance(
    id: str,
    title: str,
    read: Read[OptionsT, PredictionsT],
    score: Scored[PredictionsT, OptionsT],
    *,
    options: type[OptionsT],
    **further: Any,
) -> Grader:
    """Define a grader whose score is to be minimized, and is 0 for perfect predictions; see `define`."""
    return define(id, title, "minimize", read, score, options=options, perfect=0.0, **further)
