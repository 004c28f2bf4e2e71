"""What NumPy does slowly."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array


def distinct(values: Array) -> Array:
    """Sorted values without repeats; for large arrays several times as fast as `numpy.unique` of NumPy 2.3 and later.

    Args:
        values: Numbers, shape (n,).
    """
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
