"""Predicting Molecular Properties: whole molecules are held out."""

from dataclasses import replace
from functools import partial

from ...blocks import Metric, Table, TableSplit, Workspace, competition, corrected

BY_MOLECULE = (
    "structures",
    "dipole_moments",
    "magnetic_shielding_tensors",
    "mulliken_charges",
    "potential_energy",
    "scalar_coupling_contributions",
)


def molecules(w: Workspace, *parts: Table, every: bool = False) -> None:
    """Provide further tables and the geometry files of training molecules; with `every`, those of all molecules."""
    train, test = (rows["molecule_name"].drop_duplicates() for rows in parts)
    shaped = [*train, *test] if every else [*train]
    for name in BY_MOLECULE:
        table = w.table(f"{name}.csv", ["molecule_name"])
        w.public(f"{name}.csv", table[table["molecule_name"].isin(shaped if name == "structures" else train)])
    w.public("structures", w.tree("structures").pick([f"{name}.xyz" for name in shaped]))


SPLIT = TableSplit(
    ids="id",
    targets="scalar_coupling_constant",
    fill={"scalar_coupling_constant": 0},
    group="molecule_name",
    joined=True,
    answers="answers.csv",
    files=[molecules],
)

COMPETITION = competition(
    "champs-scalar-coupling",
    prepare=SPLIT,
    metric=Metric(grader="group-log-mae", options={"group": "type", "match": "join"}),
    fixed=corrected(
        replace(SPLIT, files=[partial(molecules, every=True)]),
        metric=Metric(grader="group-log-mae", options={"group": "type", "floor": 1e-9}),
    ),
)
