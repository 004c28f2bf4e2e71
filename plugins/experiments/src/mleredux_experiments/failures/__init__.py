"""Why runs fall short: categories found by fixed rules, each with the line that shows it.

`counts.find(run)` returns the findings of a run, the primary one first. No language model is asked, and the same run
gives the same findings. The categories are those of `CATEGORIES`, with the failure modes of MAST (arXiv 2503.13657)
that they correspond to.
"""

from __future__ import annotations

from mleredux_experiments.failures.categories import CATEGORIES, NONE, Category, Finding, primary

__all__ = ["CATEGORIES", "NONE", "Category", "Finding", "primary"]
