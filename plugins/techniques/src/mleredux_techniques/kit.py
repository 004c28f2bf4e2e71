"""The technique kit: the interface for writing techniques. The names that this module exports are public and stable.

A technique is a `TechniqueSpec`, registered with `mleredux_register_techniques`; see docs/how-to/technique.md.
Nothing here imports pandas or scikit-learn before it is called.
"""

from __future__ import annotations

from mleredux_techniques._kit.data.association import strengths as strengths
from mleredux_techniques._kit.data.columns import class_name as class_name
from mleredux_techniques._kit.data.columns import is_free_text as is_free_text
from mleredux_techniques._kit.data.dataset import Dataset as Dataset
from mleredux_techniques._kit.data.dataset import GroupColumn as GroupColumn
from mleredux_techniques._kit.data.dataset import Instance as Instance
from mleredux_techniques._kit.data.dataset import Kind as Kind
from mleredux_techniques._kit.data.dataset import Problem as Problem
from mleredux_techniques._kit.data.dataset import load as load
from mleredux_techniques._kit.data.dataset import remembered as remembered
from mleredux_techniques._kit.data.discovery import has_table as has_table
from mleredux_techniques._kit.data.near import duplicates as duplicates
from mleredux_techniques._kit.data.splits import Pool as Pool
from mleredux_techniques._kit.data.splits import Split as Split
from mleredux_techniques._kit.data.splits import pool as pool
from mleredux_techniques._kit.declaration.description import example as example
from mleredux_techniques._kit.declaration.grader import combined as combined
from mleredux_techniques._kit.declaration.grader import grade as grade
from mleredux_techniques._kit.declaration.grader import score as score
from mleredux_techniques._kit.declaration.preparation import TRUTH_FILE as TRUTH_FILE
from mleredux_techniques._kit.declaration.spec import WITH_TABLES as WITH_TABLES
from mleredux_techniques._kit.declaration.spec import TechniqueSpec as TechniqueSpec
from mleredux_techniques._kit.judging.comparison import Choice as Choice
from mleredux_techniques._kit.judging.comparison import Difference as Difference
from mleredux_techniques._kit.judging.comparison import difference as difference
from mleredux_techniques._kit.judging.comparison import judge as judge
from mleredux_techniques._kit.judging.comparison import undecided as undecided
from mleredux_techniques._kit.judging.marks import Efficacy as Efficacy
from mleredux_techniques._kit.judging.marks import Facts as Facts
from mleredux_techniques._kit.judging.marks import Figure as Figure
from mleredux_techniques._kit.judging.marks import Sheet as Sheet
from mleredux_techniques._kit.judging.marks import close as close
from mleredux_techniques._kit.judging.marks import component as component
from mleredux_techniques._kit.judging.marks import f1 as f1
from mleredux_techniques._kit.judging.marks import facts_of as facts_of
from mleredux_techniques._kit.judging.marks import finding as finding
from mleredux_techniques._kit.judging.marks import listing as listing
from mleredux_techniques._kit.judging.marks import shortened as shortened
from mleredux_techniques._kit.judging.marks import soft_f1 as soft_f1
from mleredux_techniques._kit.judging.marks import versus as versus
from mleredux_techniques._kit.judging.plans import Plan as Plan
from mleredux_techniques._kit.judging.plans import choose as choose
from mleredux_techniques._kit.judging.plans import compare as compare
from mleredux_techniques._kit.judging.plans import gap as gap
from mleredux_techniques._kit.judging.plans import losses as losses
from mleredux_techniques._kit.judging.scorer import Scorer as Scorer
from mleredux_techniques._kit.judging.scorer import scorer as scorer
from mleredux_techniques._kit.judging.study import OfColumns as OfColumns
from mleredux_techniques._kit.judging.study import OnRows as OnRows
from mleredux_techniques._kit.judging.study import Study as Study
from mleredux_techniques._kit.judging.study import Treatments as Treatments
from mleredux_techniques._kit.planting.instances import fresh_names as fresh_names
from mleredux_techniques._kit.planting.instances import lively as lively
from mleredux_techniques._kit.planting.instances import need as need
from mleredux_techniques._kit.planting.instances import renumbered as renumbered
from mleredux_techniques._kit.planting.instances import resized as resized
from mleredux_techniques._kit.planting.instances import with_columns as with_columns
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS as MAX_ITEMS
from mleredux_techniques._kit.vocabulary.document import Count as Count
from mleredux_techniques._kit.vocabulary.document import Document as Document
from mleredux_techniques._kit.vocabulary.document import Name as Name
from mleredux_techniques._kit.vocabulary.document import Part as Part
from mleredux_techniques._kit.vocabulary.document import Share as Share
from mleredux_techniques._kit.vocabulary.document import Text as Text
from mleredux_techniques._kit.vocabulary.document import once as once
from mleredux_techniques._kit.vocabulary.encoders import DropFeature as DropFeature
from mleredux_techniques._kit.vocabulary.encoders import Encoding as Encoding
from mleredux_techniques._kit.vocabulary.imputers import Imputation as Imputation
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing as Preprocessing
from mleredux_techniques._kit.vocabulary.recommendation import by_choice as by_choice
from mleredux_techniques._kit.vocabulary.recommendation import spelled as spelled
from mleredux_techniques._kit.vocabulary.scalers import Scaler as Scaler
