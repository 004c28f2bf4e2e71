"""Google QUEST Q&A Labeling: 30 ratings of a question and its answer."""

from dataclasses import replace
from typing import Any

from mleredux.errors import DataError

from ...blocks import Metric, Table, TableSplit, Workspace, classes, competition, corrected

ID = "google-quest-challenge"
TARGETS = classes(ID)
RARE = "question_type_spelling"
QUESTION = "question_body"


def vary(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Swap the first test row for the first training row with a value if the test set's rare target is constant."""
    import numpy as np
    import pandas as pd

    if test[RARE].nunique() == 1:
        rare_rows = np.flatnonzero(train[RARE] != 0)
        if not len(rare_rows):
            raise DataError(f"train.csv has no row with a value in {RARE}.", hint="Get the raw data again.")
        order = np.arange(len(train) + len(test))
        order[[rare_rows[0], len(train)]] = order[[len(train), rare_rows[0]]]
        rows = pd.concat([train, test]).iloc[order]
        train, test = rows.iloc[: len(train)], rows.iloc[len(train) :]
    constant = [target for target in TARGETS if test[target].nunique() < 2]
    if constant:
        raise DataError(f"The test rows all have the same {constant[0]}.", hint="Get the raw data again.")
    return train, test


def ramp(test: Table) -> dict[str, Any]:
    """Return the sample's values: each column runs from 0 to 1, because no column may be constant."""
    import numpy as np

    return dict.fromkeys(TARGETS, np.linspace(0, 1, len(test)))


def whole_questions(w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Move the first training question with a value to the test set if the rare target is constant there."""
    import pandas as pd

    rare = train.loc[train[RARE] != 0, QUESTION]
    if test[RARE].nunique() == 1 and len(rare):
        moved = train[QUESTION] == rare.iloc[0]
        train, test = train[~moved], pd.concat([test, train[moved]])
    return vary(w, train, test)


SPLIT = TableSplit(ids="qa_id", targets=TARGETS, fill=ramp, after=vary, answer_columns=("qa_id", *TARGETS))

COMPETITION = competition(
    ID,
    prepare=SPLIT,
    extra_columns=False,
    metric=Metric(grader="spearman", options={"match": "sorted", "keep_nan": True, "rank_text": True}),
    fixed=corrected(
        replace(SPLIT, group=QUESTION, after=whole_questions),
        metric=Metric(grader="spearman"),
    ),
)
