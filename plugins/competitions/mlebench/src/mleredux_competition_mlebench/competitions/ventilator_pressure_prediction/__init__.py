"""Ventilator Pressure Prediction: whole breaths are held out."""

from ...blocks import Metric, Table, TableSplit, Workspace, competition, renumbered

INTEGERS = {"id": "int32", "breath_id": "int32", "R": "int8", "C": "int8", "u_out": "int8"}
FLOATS = {"time_step": "float64", "u_in": "float64", "pressure": "float64"}


def renumber(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Assign new ids, from 1 in each part."""
    return renumbered(train, "id", 1), renumbered(test, "id", 1)


COMPETITION = competition(
    "ventilator-pressure-prediction",
    prepare=TableSplit(
        ids="id",
        targets="pressure",
        fill={"pressure": 0},
        group="breath_id",
        joined=True,
        read={"dtype": {**INTEGERS, **FLOATS}},
        after=renumber,
        write={"float_format": "%.10g"},
    ),
    metric=Metric(grader="mae", options={"where": {"u_out": 0}}),
)
