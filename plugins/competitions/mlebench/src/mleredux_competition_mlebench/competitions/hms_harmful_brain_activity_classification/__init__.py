"""HMS - Harmful Brain Activity Classification: expert votes on EEG segments; whole spectrograms are held out."""

from dataclasses import replace
from functools import partial

from ...blocks import FilesOfRows, Metric, Table, TableSplit, Workspace, competition, corrected

VOTES = ("seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote")
WINDOWS = (
    "label_id",
    "eeg_id",
    "eeg_label_offset_seconds",
    "spectrogram_id",
    "spectrogram_label_offset_seconds",
    "patient_id",
)
SUMS = {"row_sum": {"decimals": 5}}


def shares(w: Workspace, _train: Table, test: Table, id: str = "eeg_id") -> None:
    """Write the perfect prediction, with votes as shares of their row, and the examples, which belong to no row."""
    votes = test[list(VOTES)]
    w.private("gold_submission.csv", test[[id]].join(votes.div(votes.sum(axis=1), axis=0)))
    w.public("example_figures", w.tree("example_figures").all())


SPLIT = TableSplit(
    ids="eeg_id",
    targets=VOTES,
    fill=dict.fromkeys(VOTES, 1 / 6),
    group="spectrogram_id",
    test_columns=("spectrogram_id", "eeg_id", "patient_id"),
    files=[
        FilesOfRows(tree="train_eegs", source="{eeg_id}.parquet", train="train_eegs", test="test_eegs"),
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
        options={**SUMS, "keep_missing": True, "integers_unclipped": True, "check_further_columns": True},
    ),
    fixed=corrected(
        replace(
            SPLIT,
            ids="label_id",
            group="patient_id",
            test_columns=WINDOWS,
            files=[*SPLIT.files[:-1], partial(shares, id="label_id")],
        ),
        submission={"id_columns": ("label_id",)},
        metric=Metric(grader="kl-divergence", options=SUMS),
    ),
)
