"""Tables of submissions and answers: read, matched row by row, turned into arrays, or refused in one sentence.

It needs NumPy and pandas, which the extra `mleredux[tables]` installs; nothing else of core imports it at start-up.
"""

from __future__ import annotations

try:
    import numpy as _numpy  # noqa: F401
    import pandas as _pandas  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Grading tables needs NumPy and pandas. Install them with `pip install 'mleredux[tables]'`."
    ) from error
