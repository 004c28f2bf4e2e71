"""HMS - Harmful Brain Activity Classification: expert votes on stretches of EEG; whole spectrograms are held out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, competition
from mleredux_mlebench.blocks.fixed import prepared_by

if TYPE_CHECKING:
    import pandas as pd

VOTES = ("seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote")
SUMS = {"row_sum": {"decimals": 5}}


def shares(w: Workspace, _train: pd.DataFrame, test: pd.DataFrame) -> None:
    """The right forecast, votes as shares of their row; and the examples, which belong to no row."""
    votes = test[list(VOTES)]
    w.private("gold_submission.csv", test[["eeg_id"]].join(votes.div(votes.sum(axis=1), axis=0)))
    w.public("example_figures", w.tree("example_figures").all())


SPLIT = TableSplit(
    ids="eeg_id",
    targets=VOTES,
    fill=dict.fromkeys(VOTES, 1 / 6),
    group="spectrogram_id",
    test_columns=("spectrogram_id", "eeg_id", "patient_id"),
    files=[
        FilesOfRows(
            tree="train_eegs",
            source="{eeg_id}.parquet",
            train="train_eegs",
            test="test_eegs",
        ),
        FilesOfRows(
            tree="train_spectrograms",
            source="{spectrogram_id}.parquet",
            train="train_spectrograms",
            test="test_spectrograms",
        ),
        shares,
    ],
)

COMPETITION = competition(
    "hms-harmful-brain-activity-classification",
    prepare=SPLIT,
    metric=Metric(
        grader="kl-divergence",
        options={
            **SUMS,
            "keep_missing": True,
            "integers_unclipped": True,
            "check_further_columns": True,
        },
    ),
    variants={
        "fixed": prepared_by(
            replace(SPLIT, group="patient_id"),
            metric=Metric(grader="kl-divergence", options=SUMS),
            wrong=(
                "Recordings of one patient are in training and test, and empty cells are graded as better "
                "than the truth."
            ),
            done=(
                "Patients are held out whole, and a missing probability is refused; windows of one test "
                "recording still can't be told apart."
            ),
        )
    },
)
