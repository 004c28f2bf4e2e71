"""Select some of the requested runs: by words in their task names, or those that failed last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from mleredux.errors import MlereduxError, WrongUsage
from mleredux.models import RunPlan, State
from mleredux.models.formats import short_reference

_OPERATORS = {"and": "and", "or": "or", "not": "not", "(": "(False or", ")": ")"}
"""Python code by operator; an empty pair of brackets is a syntax error."""


def select_names(names: Iterable[str], expression: str) -> tuple[str, ...]:
    """Return the names that an expression matches: parts of names, `and`, `or`, `not` and brackets, as in pytest.

    Raises:
        WrongUsage: The expression can't be parsed.
        MlereduxError: It matches no name.
    """
    words, known = re.findall(r"[()]|[^\s()]+", expression), list(names)
    code = " ".join(_OPERATORS.get(word, f"w{at}") for at, word in enumerate(words))
    try:  # the code has no names except those words
        truths = ({f"w{at}": word.lower() in name.lower() for at, word in enumerate(words)} for name in known)
        matching = tuple(name for name, truth in zip(known, truths, strict=True) if eval(code, truth))
    except (SyntaxError, TypeError, RecursionError, MemoryError):
        hint = "Combine parts of names with `and`, `or`, `not` and parentheses."
        raise WrongUsage(f"The expression {expression!r} can't be parsed.", hint=hint) from None
    if not matching:
        raise MlereduxError(f"No task matches {expression!r}.", hint=f"The tasks are: {', '.join(known)}.")
    return matching


def failed_last(plans: Sequence[RunPlan], rows: Sequence[dict[str, Any]]) -> list[RunPlan]:
    """Return the runs whose most recent earlier execution did not end with a score; if none failed, all of them.

    Args:
        plans: The requested runs. Versions of an agent are not distinguished.
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
