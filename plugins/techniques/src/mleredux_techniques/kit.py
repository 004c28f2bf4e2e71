"""The technique kit: the interface for writing techniques. The names in `__all__` are public and stable.

A technique is a `TechniqueSpec`, registered with `mleredux_register_techniques`; see docs/how-to/technique.md.
Nothing here imports pandas or scikit-learn before it is called.
"""

from __future__ import annotations

from mleredux_techniques._kit.data.association import strengths
from mleredux_techniques._kit.data.columns import class_name, is_free_text
from mleredux_techniques._kit.data.dataset import Dataset, GroupColumn, Instance, Kind, Problem, load, remembered
from mleredux_techniques._kit.data.discovery import has_table
from mleredux_techniques._kit.data.near import duplicates
from mleredux_techniques._kit.data.splits import Pool, Split, pool
from mleredux_techniques._kit.declaration.description import example
from mleredux_techniques._kit.declaration.grader import combined, grade, score
from mleredux_techniques._kit.declaration.preparation import TRUTH_FILE
from mleredux_techniques._kit.declaration.spec import WITH_TABLES, TechniqueSpec
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge, undecided
from mleredux_techniques._kit.judging.marks import (
    Efficacy,
    Facts,
    Figure,
    Sheet,
    close,
    component,
    f1,
    facts_of,
    finding,
    listing,
    shortened,
    soft_f1,
    versus,
)
from mleredux_techniques._kit.judging.plans import Plan, choose, compare, gap, losses
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques._kit.judging.study import OfColumns, OnRows, Study, Treatments
from mleredux_techniques._kit.planting.instances import fresh_names, lively, need, renumbered, resized, with_columns
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part, Share, Text, once
from mleredux_techniques._kit.vocabulary.encoders import DropFeature, Encoding
from mleredux_techniques._kit.vocabulary.imputers import Imputation
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing
from mleredux_techniques._kit.vocabulary.recommendation import by_choice, spelled
from mleredux_techniques._kit.vocabulary.scalers import Scaler

__all__ = [
    "MAX_ITEMS",
    "TRUTH_FILE",
    "WITH_TABLES",
    "Choice",
    "Count",
    "Dataset",
    "Difference",
    "Document",
    "DropFeature",
    "Efficacy",
    "Encoding",
    "Facts",
    "Figure",
    "GroupColumn",
    "Imputation",
    "Instance",
    "Kind",
    "Name",
    "OfColumns",
    "OnRows",
    "Part",
    "Plan",
    "Pool",
    "Preprocessing",
    "Problem",
    "Scaler",
    "Scorer",
    "Share",
    "Sheet",
    "Split",
    "Study",
    "TechniqueSpec",
    "Text",
    "Treatments",
    "by_choice",
    "choose",
    "class_name",
    "close",
    "combined",
    "compare",
    "component",
    "difference",
    "duplicates",
    "example",
    "f1",
    "facts_of",
    "finding",
    "fresh_names",
    "gap",
    "grade",
    "has_table",
    "is_free_text",
    "judge",
    "listing",
    "lively",
    "load",
    "losses",
    "need",
    "once",
    "pool",
    "remembered",
    "renumbered",
    "resized",
    "score",
    "scorer",
    "shortened",
    "soft_f1",
    "spelled",
    "strengths",
    "undecided",
    "versus",
    "with_columns",
]
