"""Functions for other agents: tables, targets and submissions of a task, metrics on held-out rows, and blending.

`mleredux_agent_baseline.process` (no heavy imports) runs such an agent; everything else of this package may change.
"""

from __future__ import annotations

from mleredux_agent_baseline.columns import Profile, clean, profile_of, texts
from mleredux_agent_baseline.files import Facts, NotForBaseline
from mleredux_agent_baseline.fit import Choice, blend_loss, fit_predict, mix, select
from mleredux_agent_baseline.metrics import Array, Metric, metric_for
from mleredux_agent_baseline.models import Candidate
from mleredux_agent_baseline.problem import Head
from mleredux_agent_baseline.process import Journal
from mleredux_agent_baseline.search import make_folds
from mleredux_agent_baseline.solve import Prepared, useful_threads, write_submission

__all__ = [
    "Array",
    "Candidate",
    "Choice",
    "Facts",
    "Head",
    "Journal",
    "Metric",
    "NotForBaseline",
    "Prepared",
    "Profile",
    "blend_loss",
    "clean",
    "fit_predict",
    "make_folds",
    "metric_for",
    "mix",
    "profile_of",
    "select",
    "texts",
    "useful_threads",
    "write_submission",
]
