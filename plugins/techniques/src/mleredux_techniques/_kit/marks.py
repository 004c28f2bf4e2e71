"""How answers are held against facts: numbers within tolerances, sets by their F1, and parts with their weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mleredux_techniques._kit.results import Facts, Figure

NOTHING = 0.05
"""A part in which there is nothing to find, and nothing was claimed, has this share of its weight."""
SHOWN = 12


def close(given: float, true: float, tolerance: float = 0.02, absolute: float = 0.0) -> float:
    """1 within a relative tolerance of the truth, 0.5 within five times as much, else 0.

    Args:
        absolute: Differences up to this count as none.
    """
    off = max(0.0, abs(given - true) - absolute)
    if off <= tolerance * abs(true):
        return 1.0
    return 0.5 if off <= 5 * tolerance * abs(true) else 0.0


def f1(given: Iterable[Any], true: Iterable[Any]) -> float:
    """F1 of two sets; 1 where both are empty."""
    given, true = set(given), set(true)
    if not given and not true:
        return 1.0
    return 2 * len(given & true) / (len(given) + len(true))


def soft_f1(credits: float, given: int, true: int) -> float:
    """F1 with partial credits: `credits` of `given` claims and of `true` facts."""
    return 2 * credits / (given + true) if given + true else 1.0


def component(name: str, weight: float, score: float, value: Any, explanation: str) -> Figure:
    """One component."""
    return Figure(name, value, explanation, score=round(min(1.0, max(0.0, score)), 4), weight=weight)


def finding(name: str, weight: float, score: float, value: Any, explanation: str, *, true: int, given: int) -> Figure:
    """A component about things to be found: weighs little where there are none and none were claimed."""
    figure = component(name, weight, score, value, explanation)
    return figure if true or given else replace(figure, weight=weight * NOTHING)


def facts_of(parts: list[Figure]) -> Facts:
    """The weighted mean of the components."""
    scored = [figure for figure in parts if figure.score is not None and figure.weight > 0]
    weight = sum(figure.weight for figure in scored)
    score = sum((figure.score or 0.0) * figure.weight for figure in scored) / weight if weight else 0.0
    return Facts(round(score, 4), parts)


def listing(names: Iterable[str]) -> str:
    """Names for a sentence; `none` where there are none."""
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return (", ".join(listed[:SHOWN]) + more) or "none"


def versus(given: Any, true: Any) -> dict[str, Any]:
    """An answer beside the fact."""
    return {"given": given, "true": true}


def shortened(mapping: Mapping[str, Any], limit: int = 50) -> dict[str, Any]:
    """The first entries of a long mapping."""
    return dict(list(mapping.items())[:limit])
