"""Tables of submissions and answers: read, matched row by row, turned into arrays, or refused in one sentence.

It needs NumPy and pandas, which the extra `mleredux[tables]` installs; nothing else of core imports it at start-up.

| module | contents |
|---|---|
| `definition`, `options` | from a metric to a grader; options of all graders |
| `table`, `utf8` | hostile CSV files; columns of text as bytes |
| `ids`, `matching`, `cells` | rows and cells of a submission matched with the answers |
| `columns`, `functions` | columns as arrays; graders of plain functions |
"""

from __future__ import annotations

try:
    import numpy as _numpy  # noqa: F401
    import pandas as _pandas  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Grading tables needs NumPy and pandas. Install them with `pip install 'mleredux[tables]'`."
    ) from error
