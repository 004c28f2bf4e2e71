"""What predictions show of the columns that they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

USED = 1e-3
"""Below this p-value, corrected for the number of predicted columns, predictions depend on a column."""
_BINS, _FEW, _MEMBERS = 8, 30, 3


def dependence(column: pd.Series[Any], predictions: pd.DataFrame) -> float | None:
    """The p-value of predictions being equally distributed for all values of a column.

    Kruskal and Wallis' test ("Use of ranks in one-criterion variance analysis", 1952), over the values of a column of
    few and over quantiles of a column of many numbers; Bonferroni's correction over the predicted columns, each label
    being one.

    Args:
        column: Of shape (rows,).
        predictions: Of shape (rows, targets), in the same order.

    Returns:
        None where too few values repeat.
    """
    import pandas as pd
    from scipy.stats import kruskal

    if pd.api.types.is_numeric_dtype(column) and column.nunique() > _FEW:
        column = pd.qcut(column.rank(method="first"), _BINS, labels=False)
    codes, _ = pd.factorize(column.astype(str))
    kept = [place for place in (np.flatnonzero(codes == code) for code in np.unique(codes)) if len(place) >= _MEMBERS]
    numbers = pd.get_dummies(predictions, dtype=float)
    varying = [values for _, values in numbers.items() if values.nunique() > 1]
    if len(kept) < 2 or sum(map(len, kept)) < _FEW:
        return None
    if not varying:
        return 1.0
    found = [kruskal(*(values.to_numpy(dtype=float)[place] for place in kept)).pvalue for values in varying]
    return float(min(1.0, len(varying) * np.nanmin(found)))
