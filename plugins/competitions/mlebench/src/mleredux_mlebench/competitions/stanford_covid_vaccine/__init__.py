"""OpenVaccine: five properties of every base of RNA molecules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.errors import DataError

from mleredux_mlebench.blocks import JsonLines, Metric, Workspace, competition, renumbered
from mleredux_mlebench.blocks.fixed import graded_by

if TYPE_CHECKING:
    import pandas as pd

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")
SCORED = {"scored": ["reactivity", "deg_Mg_pH10", "deg_Mg_50C"], "keep": "keep"}
SHARE = 0.1
TEN_DECIMALS = {"float_format": "%.10f"}


def bases(test: pd.DataFrame) -> pd.DataFrame:
    """A row per base of every molecule; those beyond the measured ones hold 0 and are not kept for scoring.

    Raises:
        DataError: A molecule has other measurements than it says.
    """
    import numpy as np
    import pandas as pd

    lengths, measured = test["seq_length"].to_numpy(), test["seq_scored"].to_numpy()
    if (measured >= lengths).any() or any((test[target].str.len() != measured).any() for target in TARGETS):
        raise DataError("Some molecules of train.json lack measurements.", hint="Get the raw data again.")
    positions = np.concatenate([np.arange(length) for length in lengths])
    keep = positions < np.repeat(measured, lengths)
    names = pd.Series(np.repeat(test["id"].to_numpy(), lengths))
    table = pd.DataFrame({"id_seqpos": names + "_" + pd.Series(positions).astype(str)})
    for target in TARGETS:
        values = np.zeros(len(table))
        values[keep] = np.concatenate(test[target].to_numpy())
        table[target] = values
    return table.assign(keep=keep)


def prepare(w: Workspace) -> None:
    """Draw the test from the molecules of good quality; a tenth of all."""
    import pandas as pd

    rows, unlabelled = (pd.read_json(w.path(f"{name}.json"), lines=True) for name in ("train", "test"))
    w.table("sample_submission.csv", ("id_seqpos", *TARGETS))
    drawn = rows[rows["SN_filter"] > 0].sample(
        n=int((w.settings.test_size or SHARE) * len(rows)), random_state=w.seed(0)
    )
    is_test = rows.index.isin(drawn.index)
    train, test = renumbered(rows[~is_test], "index"), renumbered(rows[is_test], "index")
    answers = bases(test)
    w.public("train.json", JsonLines(train))
    w.public("test.json", JsonLines(test[list(unlabelled.columns)]))
    w.public("sample_submission.csv", answers[["id_seqpos"]].assign(**dict.fromkeys(TARGETS, 0.0)), **TEN_DECIMALS)
    w.private("test.csv", answers, **TEN_DECIMALS)


COMPETITION = competition(
    "stanford-covid-vaccine",
    prepare=prepare,
    id_columns=("id_seqpos",),
    target_columns=TARGETS,
    metric=Metric(grader="mcrmse", options={**SCORED, "keep_by_file_row": True}),
    variants={
        "fixed": graded_by(
            Metric(grader="mcrmse", options=SCORED),
            wrong=(
                "Which rows are scored is taken by their place in the submission, so rows in another "
                "order are graded wrongly."
            ),
            done="Which rows are scored follows from their ids.",
        )
    },
)
