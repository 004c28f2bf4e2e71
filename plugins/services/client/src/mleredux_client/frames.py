"""Results as tables: rows of plain values, and data frames of rows. Only this module imports pandas, when it is
needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from mleredux_client.display import rows_html, runs_html
from mleredux_client.errors import UsageError
from mleredux_client.models.run import RunRecord

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

RUN_COLUMNS = (
    "id", "task", "agent", "seed", "sandbox", "status", "cause", "score", "medal", "verdict", "valid", "percentile",
    "seconds", "paused_seconds", "tokens", "cost_usd", "message", "project", "user", "experiment", "arm", "created_at",
    "started_at", "ended_at",
)  # fmt: skip


class Listing(list[T]):
    """A list that notebooks show as a table."""

    def to_dataframe(self) -> pd.DataFrame:
        """Return a table with a row per item."""
        return frame(row_of(item) for item in self)

    def _repr_html_(self) -> str:
        records = [getattr(item, "record", item) for item in self]
        runs = [record for record in records if isinstance(record, RunRecord)]
        if runs and len(runs) == len(records):
            return runs_html(runs)
        return rows_html([row_of(item) for item in self])


def row_of(item: object) -> dict[str, Any]:
    """Return a model, or a resource with a record, as a row."""
    record = getattr(item, "record", item)
    if isinstance(record, RunRecord):
        return run_row(record)
    if isinstance(record, BaseModel):
        return record.model_dump(exclude_unset=True) | (record.model_extra or {})
    return dict(record) if isinstance(record, Mapping) else {"value": record}


def run_row(run: RunRecord) -> dict[str, Any]:
    """Return a run as a row; its options and labels are columns `option.NAME` and `label.NAME`."""
    return {
        **{name: getattr(run, name) for name in RUN_COLUMNS},
        **{f"option.{name}": value for name, value in run.options.items()},
        **{f"label.{name}": value for name, value in run.labels.items()},
    }


def frame(rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = ()) -> pd.DataFrame:
    """Return a DataFrame of rows.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        hint = "Install it: `pip install 'mleredux-client[dataframe]'`."
        raise UsageError("pandas is not installed.", hint=hint) from None
    listed = [dict(row) for row in rows]
    return pd.DataFrame(listed, columns=None if listed else list(columns))
