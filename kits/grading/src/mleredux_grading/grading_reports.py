"""Read MLE-bench grading reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models.base import FieldTwice, read_json

_MANY_BYTES = 64 << 20
_THRESHOLDS = ("gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold")


def read_report(path: Path) -> list[dict[str, Any]]:
    """Read the competition reports from an MLE-bench grading report, a list of such reports, or a single one.

    Raises:
        MlereduxError: The file is not such a report, or lists a competition twice.
    """
    try:
        if path.stat().st_size > _MANY_BYTES:
            raise ValueError("too large")
        content = read_json(path.read_bytes())
    except FieldTwice as error:
        raise MlereduxError(f"{path}: {error}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise MlereduxError(f"{path} can't be read as JSON ({type(error).__name__}).") from error
    listed = content.get("competition_reports", [content]) if isinstance(content, dict) else content
    if not isinstance(listed, list) or content == [] or not all(map(_is_report, listed)):
        raise MlereduxError(
            f"{path} is not an MLE-bench grading report.",
            hint="It must be an object with `competition_reports`, each with `competition_id` and the medals, or only "
            "the list of these.",
        )
    names = [report["competition_id"] for report in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MlereduxError(f"{path} lists {twice[0]} more than once.", hint="Split it into one report per run.")
    return listed


def _is_report(doc: Any) -> bool:
    if not isinstance(doc, dict) or not isinstance(doc.get("competition_id"), str):
        return False
    if not all(isinstance(doc.get(name), bool) for name in ("any_medal", "gold_medal", "silver_medal", "bronze_medal")):
        return False
    numbers = [doc.get(name) for name in ("score", *_THRESHOLDS)]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in numbers)
