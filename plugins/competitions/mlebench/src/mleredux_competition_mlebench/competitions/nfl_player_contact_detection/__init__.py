"""1st and Future - Player Contact Detection: whole plays are held out of videos and tables."""

from ...blocks import Column, Metric, Table, TableSplit, Workspace, by_group, competition, corrected

TABLES = ("baseline_helmets", "player_tracking", "video_metadata")
VIEWS = ("All29", "Endzone", "Sideline")


def plays(w: Workspace, train: Table, test: Table) -> None:
    """Provide the further tables and the videos of each play."""
    parts = {"train": train["game_play"].unique(), "test": test["game_play"].unique()}
    videos = w.tree("train")
    for name in TABLES:
        table = w.table(f"train_{name}.csv", ["game_play"])
        for part, rows in zip(parts, by_group(table, "game_play", *parts.values()), strict=True):
            w.public(f"{part}_{name}.csv", rows)
    for part, names in parts.items():
        w.public(part, videos.pick([f"{play}_{view}.mp4" for play in names for view in VIEWS]))


def games(_w: Workspace, labels: Table) -> Column:
    """Return the game of each play (`58168_003392` is a play of game 58168)."""
    return labels["game_play"].str.partition("_")[0]


COMPETITION = competition(
    "nfl-player-contact-detection",
    prepare=TableSplit(
        table="train_labels.csv",
        read={"dtype": {"nfl_player_id_2": str}},  # player numbers, or G for the ground
        ids="contact_id",
        targets="contact",
        fill={"contact": 0},
        group="game_play",
        train="train_labels.csv",
        test=None,
        files=[plays],
    ),
    metric=Metric(grader="matthews-correlation"),
    fixed=corrected(
        group=games,
    ),
)
