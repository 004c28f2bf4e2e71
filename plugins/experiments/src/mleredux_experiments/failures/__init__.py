"""Why runs fall short: categories assigned by fixed rules, each with the line that is evidence for it.

`counts.find(run)` returns the findings of a run, the primary one first. No language model is called, and the same run
always gives the same findings. The categories are listed in `CATEGORIES`, with the corresponding failure modes of MAST
(arXiv 2503.13657).
"""

from __future__ import annotations

from mleredux_experiments.failures.categories import CATEGORIES, NONE, Category, Finding, primary

__all__ = ["CATEGORIES", "NONE", "Category", "Finding", "primary"]
