"""Some of the requested runs: tasks by words of their names, and runs that failed last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models import RunPlan, State
from mleredux.models.formats import short_reference


def select_names(names: Iterable[str], expression: str) -> tuple[str, ...]:
    """Return the names that an expression matches: parts of names, `and`, `or`, `not` and brackets, as in pytest.

    Raises:
        MlereduxError: It can't be read, or matches none.
    """
    words, known = re.findall(r"[()]|[^\s()]+", expression), list(names)
    code = " ".join(word if word in ("and", "or", "not", "(", ")") else f"w{at}" for at, word in enumerate(words))
    try:  # the code has no names but those of the words
        matching = tuple(name for name in known if eval(code, _values(words, name)))
    except (SyntaxError, TypeError, RecursionError, MemoryError):
        hint = "Combine parts of names by `and`, `or`, `not` and brackets."
        raise MlereduxError(f"The expression {expression!r} can't be read.", hint=hint) from None
    if not matching:
        raise MlereduxError(f"No task matches {expression!r}.", hint=f"The tasks are {', '.join(known)}.")
    return matching


def _values(words: Sequence[str], name: str) -> dict[str, Any]:
    return {f"w{at}": word.lower() in name.lower() for at, word in enumerate(words)}


def failed_last(plans: Sequence[RunPlan], rows: Sequence[dict[str, Any]]) -> list[RunPlan]:
    """Return the runs of which the newest earlier one did not end with a score; all of them if none failed.

    Args:
        plans: The requested runs. An agent of another version counts as the same.
        rows: Rows of the store, newest first.
    """
    failed: dict[tuple[str, str, int], bool] = {}
    for row in rows:
        if row["task"] is not None and row["status"] in {str(state) for state in State if state.final}:
            key = row["task"], _plain(row["agent"]), row["seed"]
            failed.setdefault(key, row["status"] != State.DONE or row["score"] is None)
    return [plan for plan in plans if failed.get((plan.task, _plain(plan.agent), plan.seed))] or list(plans)


def _plain(agent: str) -> str:
    return short_reference(agent).partition("@")[0]
