"""Google QUEST Q&A Labeling: 30 judgements on a question and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mleredux.errors import DataError

from mleredux_mlebench.blocks import Metric, TableSplit, Workspace, classes, competition

if TYPE_CHECKING:
    import pandas as pd

ID = "google-quest-challenge"
TARGETS = classes(ID)
RARE = "question_type_spelling"


def vary(_w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Where the rare target is constant in the test, its first row and the first training row with a value swap."""
    import numpy as np
    import pandas as pd

    if test[RARE].nunique() == 1:
        found = np.flatnonzero(train[RARE] != 0)
        if not len(found):
            raise DataError(f"train.csv has no row with a value in {RARE}.", hint="Get the raw data again.")
        order = np.arange(len(train) + len(test))
        order[[found[0], len(train)]] = order[[len(train), found[0]]]
        rows = pd.concat([train, test]).iloc[order]
        train, test = rows.iloc[: len(train)], rows.iloc[len(train) :]
    constant = [target for target in TARGETS if test[target].nunique() < 2]
    if constant:
        raise DataError(f"The test rows all have the same {constant[0]}.", hint="Get the raw data again.")
    return train, test


def ramp(test: pd.DataFrame) -> dict[str, Any]:
    """The sample's values: as no column may be constant, each goes from 0 to 1."""
    import numpy as np

    return dict.fromkeys(TARGETS, np.linspace(0, 1, len(test)))


COMPETITION = competition(
    ID,
    prepare=TableSplit(ids="qa_id", targets=TARGETS, fill=ramp, after=vary, answer_columns=("qa_id", *TARGETS)),
    extra_columns=False,
    metric=Metric(grader="spearman", options={"match": "sorted", "keep_nan": True, "rank_text": True}),
)
