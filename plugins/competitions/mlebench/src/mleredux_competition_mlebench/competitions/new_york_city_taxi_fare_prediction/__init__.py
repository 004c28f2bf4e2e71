"""New York City Taxi Fare Prediction: 55 million rides, a few of which are held out."""

from ...blocks import Metric, TableSplit, competition

COMPETITION = competition(
    "new-york-city-taxi-fare-prediction",
    prepare=TableSplit(
        ids="key",
        targets="fare_amount",
        fill={"fare_amount": 11.35},
        test_size=9_914,
        train="labels.csv",
        copies=("GCP-Coupons-Instructions.rtf",),
    ),
    metric=Metric(grader="rmse", options={"match": "sorted"}),
    fixed=Metric(grader="rmse"),
)
