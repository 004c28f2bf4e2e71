"""Building blocks of the declarations: code shared by several competitions.

| modules | contents |
|---|---|
| `declare`, `recipes` | declarations of competitions and of `fixed` variants; preparation recipes as data |
| `per_category`, `spoken_tokens` | shared parts of image collections by category, and of text normalization |
| `workspace` | one preparation: inputs read, outputs planned, then written |
| `trees`, `archives` | raw files in folders and in archives |
| `tables`, `fast_floats`, `tfrecords` | readers of tables, of inexact floats, and of TFRecords |
| `splits`, `likeness` | held-out rows, groups and files; near-duplicates kept on one side of the split |
| `contents`, `parquet`, `json_records`, `one_pass` | output files: tables, JSON, archives; several in one pass |
| `placement` | files linked or copied to their destination |
| `extras` | optional dependencies |
"""

from mleredux.models import KnownLeak
from mleredux.plugin.task import Metric

from mleredux_competition_mlebench.blocks.contents import (
    Array,
    Content,
    Csv,
    Json,
    JsonLines,
    SevenZip,
    Text,
    Written,
    Zip,
    write_tars,
)
from mleredux_competition_mlebench.blocks.declare import competition, corrected, drawn_by_content
from mleredux_competition_mlebench.blocks.extras import require
from mleredux_competition_mlebench.blocks.fast_floats import fast_floats, read_fast
from mleredux_competition_mlebench.blocks.json_records import IndentedJson
from mleredux_competition_mlebench.blocks.likeness import linked, similar_images
from mleredux_competition_mlebench.blocks.one_pass import one_pass
from mleredux_competition_mlebench.blocks.parquet import Parquet, read_parquet
from mleredux_competition_mlebench.blocks.recipes import PRIVATE_SAMPLE, FilesOfRows, TableSplit, recipe
from mleredux_competition_mlebench.blocks.splits import by_group, joined_groups
from mleredux_competition_mlebench.blocks.tables import Column, Table, filled, one_hot, renumbered, texts
from mleredux_competition_mlebench.blocks.tfrecords import bytes_feature
from mleredux_competition_mlebench.blocks.trees import Files, Member, Tree
from mleredux_competition_mlebench.blocks.workspace import Preparation, Settings, Workspace
from mleredux_competition_mlebench.facts import classes

__all__ = [
    "PRIVATE_SAMPLE",
    "Array",
    "Column",
    "Content",
    "Csv",
    "Files",
    "FilesOfRows",
    "IndentedJson",
    "Json",
    "JsonLines",
    "KnownLeak",
    "Member",
    "Metric",
    "Parquet",
    "Preparation",
    "Settings",
    "SevenZip",
    "Table",
    "TableSplit",
    "Text",
    "Tree",
    "Workspace",
    "Written",
    "Zip",
    "by_group",
    "bytes_feature",
    "classes",
    "competition",
    "corrected",
    "drawn_by_content",
    "fast_floats",
    "filled",
    "joined_groups",
    "linked",
    "one_hot",
    "one_pass",
    "read_fast",
    "read_parquet",
    "recipe",
    "renumbered",
    "require",
    "similar_images",
    "texts",
    "write_tars",
]
