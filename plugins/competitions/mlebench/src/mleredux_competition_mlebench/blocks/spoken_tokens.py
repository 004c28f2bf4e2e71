"""Shared parts of the two text normalization challenges: tokens of sentences, as written and as spoken."""

from __future__ import annotations

import csv
from functools import partial
from typing import Any

from mleredux.plugin.task import Competition, Metric

from mleredux_competition_mlebench.blocks.contents import Csv, Zip
from mleredux_competition_mlebench.blocks.declare import competition
from mleredux_competition_mlebench.blocks.recipes import PRIVATE_SAMPLE, recipe
from mleredux_competition_mlebench.blocks.workspace import Workspace

QUOTED: dict[str, Any] = {"quoting": csv.QUOTE_NONNUMERIC}
COLUMNS = ("sentence_id", "token_id", "class", "before", "after")


def prepare(language: str, w: Workspace, as_said: bool = False) -> None:
    """Hold out sentences, and renumber the sentences of each part.

    Args:
        language: Prefix of the raw files' names.
        as_said: Whether to hold out sentences with equal words together, and to keep words such as "null".
    """
    import pandas as pd

    train_name, test_name, sample_name = (
        f"{language}_{name}.csv" for name in ("train", "test_2", "sample_submission_2")
    )
    for name in (test_name, sample_name):
        w.path(f"{name}.zip")
    read = {"keep_default_na": False} if as_said else {}
    rows = w.table(train_name, COLUMNS, archive=f"{train_name}.zip", **read)
    groups = rows["sentence_id"]
    if as_said:
        sentences = rows.groupby("sentence_id")["before"].agg(" ".join)
        groups = groups.map(pd.Series(pd.factorize(sentences)[0], index=sentences.index))
    train, test = (
        part.assign(sentence_id=pd.factorize(part["sentence_id"])[0]) for part in w.split_groups(rows, groups)
    )
    ids = test["sentence_id"].astype(str) + "_" + test["token_id"].astype(str)
    answers, sample = (pd.DataFrame({"id": ids, "after": test[column]}) for column in ("after", "before"))
    for name, table in (
        (train_name, train),
        (test_name, test[["sentence_id", "token_id", "before"]]),
        (sample_name, sample),
    ):
        w.public(f"{name}.zip", Zip({name: Csv(table, QUOTED)}, stored=True))
    w.private("answers.csv", answers, **QUOTED)
    w.private("sample_submission.csv", sample, **QUOTED)


def text_normalization(id: str, language: str) -> Competition:
    """Declare one of the challenges."""
    return competition(
        id,
        prepare=recipe("id", "after", answers="answers.csv", sample=PRIVATE_SAMPLE)(partial(prepare, language)),
        metric=Metric(grader="exact-match", options={"missing": "nan", "numbers": "text"}),
        fixed=partial(prepare, language, as_said=True),
    )
