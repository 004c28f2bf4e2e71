"""INGV - Volcanic Eruption Prediction: ten minutes of ten sensors, one file per segment."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "predict-volcanic-eruptions-ingv-oe",
    prepare=TableSplit(
        ids="segment_id",
        targets="time_to_eruption",
        fill={"time_to_eruption": 0},
        test=None,
        files=[FilesOfRows(tree="train", source="{segment_id}.csv")],
    ),
    metric=Metric(grader="mae", options={"match": "join", "decimals": 0}),
    fixed=Metric(grader="mae", options={"decimals": 0}),
)
