"""1st and Future - Player Contact Detection: whole plays are held out of videos and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import Metric, TableSplit, Workspace, by_group, competition
from mleredux_mlebench.blocks.fixed import prepared_by

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("baseline_helmets", "player_tracking", "video_metadata")
VIEWS = ("All29", "Endzone", "Sideline")


def plays(w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> None:
    """Further tables and the videos of each play."""
    parts = {"train": train["game_play"].unique(), "test": test["game_play"].unique()}
    videos = w.tree("train")
    for name in TABLES:
        table = w.table(f"train_{name}.csv", ["game_play"])
        for part, rows in zip(parts, by_group(table, "game_play", *parts.values()), strict=True):
            w.public(f"{part}_{name}.csv", rows)
    for part, names in parts.items():
        w.public(part, videos.pick([f"{play}_{view}.mp4" for play in names for view in VIEWS]))


def game(_w: Workspace, labels: pd.DataFrame) -> pd.DataFrame:
    """The labels with the game of each play (`58168_003392` is a play of game 58168)."""
    return labels.assign(game=labels["game_play"].str.partition("_")[0])


def no_game(_w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both parts without that column again."""
    return train.drop(columns="game"), test.drop(columns="game")


SPLIT = TableSplit(
    table="train_labels.csv",
    read={"dtype": {"nfl_player_id_2": str}},  # numbers, and G for the ground
    ids="contact_id",
    targets="contact",
    fill={"contact": 0},
    group="game_play",
    train="train_labels.csv",
    test=None,
    files=[plays],
)

COMPETITION = competition(
    "nfl-player-contact-detection",
    prepare=SPLIT,
    metric=Metric(grader="matthews-correlation"),
    variants={
        "fixed": prepared_by(
            replace(SPLIT, group="game", before=game, after=no_game),
            wrong="Plays of one game are in training and test.",
            done="Games are held out whole.",
        )
    },
)
