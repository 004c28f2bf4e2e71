"""Plain functions as metrics: `metric(y_true, y_pred, sample_weight=None) -> float`."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mleredux.errors import MlereduxError, NotFound, one_line
from mleredux.models import Grader
from mleredux.models.grader import Direction, Targets

Result = TypeVar("Result")


def make_grader(
    function: Callable[..., Any],
    *,
    direction: Direction,
    targets: Targets = "numbers",
    perfect: float | None = None,
    title: str | None = None,
) -> Grader:
    """Create a grader from a metric on matched arrays, for `Metric(grader=…)`. Scikit-learn's metrics are such
    functions.

    Rows are matched by the task's id columns, and predictions are checked before the function is called.

    Args:
        function: `function(y_true, y_pred)`, with `sample_weight=` if the metric's options name a `weight` column of
            the answers. Arrays have the shape (rows,), or (rows, targets) if there are several target columns.
        direction: `maximize` or `minimize`.
        targets: The values of the target columns; others are rejected. `numbers`: finite numbers. `probabilities`: 0 to
            1, adding up to 1 in each row if there are several columns. `labels`: text or integers, like the true
            labels. `texts`: any text. For the first two, `y_true` is numbers if the answers are.
        perfect: The best possible score, if there is one.
        title: A short description for lists; None: the function's name.
    """

    @cache
    def grader() -> Grader:
        from mleredux_tables.functions import define_function

        return define_function(function, name, title or name, direction, targets, perfect)

    name = getattr(function, "__name__", "metric").strip("_<>").replace("_", "-").lower()
    return Grader(
        id=name,
        title=title or name,
        direction=direction,
        perfect=perfect,
        score=lambda inputs: grader().score(inputs),
        score_tables=lambda *inputs: _needed(grader().score_tables)(*inputs),
        check=lambda inputs: _needed(grader().check)(inputs),
        reference=lambda inputs, path: _needed(grader().reference)(inputs, path),
    )


def _needed(method: Callable[..., Result] | None) -> Callable[..., Result]:
    assert method is not None
    return method


def find_function(name: str) -> Callable[..., Any] | Grader:
    """Load the function or grader `name` (`folder/metric.py:function`) of a Python file.

    Raises:
        NotFound: The file does not exist, or does not define the function.
        MlereduxError: The file can't be executed.
    """
    place, _, attribute = name.rpartition(":")
    path = Path(place)
    if not path.is_file() or not attribute:
        raise NotFound(f"There is no file {place or name!r}.", hint="Use the form --metric metric.py:function.")
    try:
        function = runpy.run_path(str(path)).get(attribute)
    except Exception as error:  # the user's own code may raise anything
        raise MlereduxError(f"{path} can't be executed ({one_line(error)}).") from error
    if not isinstance(function, Grader) and not callable(function):
        raise NotFound(f"{path} has no function {attribute!r}.", hint="Define one that accepts y_true and y_pred.")
    return function
