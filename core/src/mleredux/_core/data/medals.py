"""Medals by Kaggle's rule, the median, and the percentile of a score on a leaderboard.

The rule is Kaggle's "progression" table (https://www.kaggle.com/progression): the rank that still earns a
medal depends on the number of teams, and fractional ranks are rounded down.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mleredux.errors import DataError, file_errors
from mleredux.models import Thresholds
from mleredux.models.grader import Direction


@dataclass(frozen=True)
class Medals:
    """The medals of a score. The names are those of the report's fields.

    Attributes:
        gold_medal: The best medal is gold; the same applies to the others, so at most one is True.
        above_median: Strictly better than the median of the leaderboard.
    """

    gold_medal: bool = False
    silver_medal: bool = False
    bronze_medal: bool = False
    above_median: bool = False

    @property
    def any_medal(self) -> bool:
        """Whether the score earns any medal."""
        return self.gold_medal or self.silver_medal or self.bronze_medal


def medal_ranks(teams: int) -> tuple[int, int, int]:
    """Return the last ranks, counted from 1, that earn gold, silver and bronze for this number of teams.

    Raises:
        ValueError: There are no teams.
    """
    if teams < 1:
        raise ValueError("a leaderboard needs at least one team")
    if teams < 100:
        ranks = teams // 10, teams // 5, teams * 2 // 5
    elif teams < 250:
        ranks = 10, teams // 5, teams * 2 // 5
    elif teams < 1000:
        ranks = 10 + teams // 500, 50, 100
    else:
        ranks = 10 + teams // 500, teams // 20, teams // 10
    gold, silver, bronze = (max(rank, 1) for rank in ranks)
    return gold, silver, bronze


def thresholds(scores: Sequence[float]) -> Thresholds:
    """Return the thresholds of a leaderboard: the scores at the last medal ranks, and the median.

    Args:
        scores: All scores of the leaderboard, best first.

    Raises:
        ValueError: There are no scores.
    """
    gold, silver, bronze = medal_ranks(len(scores))
    return Thresholds(
        gold=scores[gold - 1], silver=scores[silver - 1], bronze=scores[bronze - 1], median=statistics.median(scores)
    )


def medals(score: float | None, thresholds: Thresholds, direction: Direction) -> Medals:
    """Return the medals of a score: a medal is earned at its threshold or better; above the median means strictly
    better.

    Args:
        score: The score; None and NaN earn nothing.
    """
    if score is None or math.isnan(score):
        return Medals()
    sign = 1 if direction == "maximize" else -1
    value = sign * score
    gold = value >= sign * thresholds.gold
    silver = not gold and value >= sign * thresholds.silver
    bronze = not gold and not silver and value >= sign * thresholds.bronze
    return Medals(gold, silver, bronze, above_median=value > sign * thresholds.median)


def percentile(score: float | None, scores: Sequence[float], direction: Direction) -> float | None:
    """Return the percentage of the leaderboard's entries that a score beats or equals.

    Args:
        scores: All scores of the leaderboard, in any order.

    Returns:
        A value from 0 to 100; None if there is no score, the score is NaN, or the leaderboard is empty.
    """
    if score is None or math.isnan(score) or not scores:
        return None
    ordered = sorted(scores)
    better = len(ordered) - bisect_right(ordered, score) if direction == "maximize" else bisect_left(ordered, score)
    return 100 * (len(ordered) - better) / len(ordered)


def read_leaderboard(path: Path) -> list[float]:
    """Return the column `score` of a leaderboard file, in the order of the file (best first).

    Args:
        path: A CSV; compressed if the name ends in .gz or .xz.

    Raises:
        DataError: The file can't be read, or has no column `score`, no rows, or an entry that is not a number.
    """
    unreadable, hint = f"Leaderboard {path} can't be read", "It must be a CSV, CSV.gz or CSV.xz file."
    with file_errors(DataError, unreadable, hint, EOFError, lzma.LZMAError, csv.Error), _open(path) as file:
        rows = csv.DictReader(file)
        if "score" not in (rows.fieldnames or ()):
            raise DataError(f"Leaderboard {path} has no column `score`.", hint="Add the column to its header.")
        scores = [_score(row["score"], path, rows.line_num) for row in rows]
    if not scores:
        raise DataError(f"Leaderboard {path} has no entries.", hint="Add at least one row.")
    return scores


def _open(path: Path) -> IO[str]:
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    file: IO[str] = opener(path, "rt", encoding="utf-8", newline="")
    return file


def _score(text: str | None, path: Path, line: int) -> float:
    try:
        score = float(text or "")
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise DataError(f"Leaderboard {path}, line {line}: {text!r} is not a score.", hint="Write a number there.")
    return score
