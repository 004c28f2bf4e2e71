"""Comparison of answers with facts: numbers within tolerances, sets by F1, and weighted components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mleredux_techniques._kit.judging.results import Facts, Figure

NOTHING = 0.05
"""A component with nothing to find and nothing claimed has this share of its weight."""
SHOWN = 12


def close(given: float, true: float, tolerance: float = 0.02, absolute: float = 0.0) -> float:
    """Return 1 within a relative tolerance of the truth, 0.5 within five times the tolerance, else 0.

    Args:
        absolute: Differences up to this are ignored.
    """
    off = max(0.0, abs(given - true) - absolute)
    if off <= tolerance * abs(true):
        return 1.0
    return 0.5 if off <= 5 * tolerance * abs(true) else 0.0


def f1(given: Iterable[Any], true: Iterable[Any]) -> float:
    """Return the F1 of two sets; 1 if both are empty."""
    given, true = set(given), set(true)
    if not given and not true:
        return 1.0
    return 2 * len(given & true) / (len(given) + len(true))


def soft_f1(credits: float, given: int, true: int) -> float:
    """Return the F1 with partial credits: `credits` of `given` claims and of `true` facts."""
    return 2 * credits / (given + true) if given + true else 1.0


def component(name: str, weight: float, score: float, value: Any, explanation: str, *, decides: bool = False) -> Figure:
    """Return one component; `decides`: as of a `Figure`."""
    return Figure(name, value, explanation, round(min(1.0, max(0.0, score)), 4), weight, decides)


def finding(
    name: str,
    weight: float,
    score: float,
    value: Any,
    explanation: str,
    *,
    true: int,
    given: int,
    decides: bool | None = None,
) -> Figure:
    """Return a component about things to find; its weight is small if there are none and none were claimed.

    Args:
        decides: As of a `Figure`; None: if there are things to find.
    """
    figure = component(name, weight, score, value, explanation, decides=true > 0 if decides is None else decides)
    return figure if true or given else replace(figure, weight=weight * NOTHING)


def facts_of(parts: list[Figure]) -> Facts:
    """Return the weighted mean of the components."""
    scored = [figure for figure in parts if figure.score is not None and figure.weight > 0]
    weight = sum(figure.weight for figure in scored)
    score = sum((figure.score or 0.0) * figure.weight for figure in scored) / weight if weight else 0.0
    return Facts(round(score, 4), parts)


def listing(names: Iterable[str]) -> str:
    """Join names for a sentence; `none` if there are none."""
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return (", ".join(listed[:SHOWN]) + more) or "none"


def versus(given: Any, true: Any) -> dict[str, Any]:
    """Return an answer next to the fact."""
    return {"given": given, "true": true}


def shortened(mapping: Mapping[str, Any], limit: int = 50) -> dict[str, Any]:
    """Return the first entries of a long mapping."""
    return dict(list(mapping.items())[:limit])
