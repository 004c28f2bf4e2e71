"""Predicting Molecular Properties: whole molecules are held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import Metric, TableSplit, Workspace, competition

if TYPE_CHECKING:
    import pandas as pd

BY_MOLECULE = (
    "structures",
    "dipole_moments",
    "magnetic_shielding_tensors",
    "mulliken_charges",
    "potential_energy",
    "scalar_coupling_contributions",
)


def molecules(w: Workspace, train: pd.DataFrame, _test: pd.DataFrame) -> None:
    """Further tables and the geometry files, of training molecules only."""
    names = train["molecule_name"].drop_duplicates()
    for name in BY_MOLECULE:
        table = w.table(f"{name}.csv", ["molecule_name"])
        w.public(f"{name}.csv", table[table["molecule_name"].isin(names)])
    w.public("structures", w.tree("structures").pick(names + ".xyz"))


COMPETITION = competition(
    "champs-scalar-coupling",
    prepare=TableSplit(
        ids="id",
        targets="scalar_coupling_constant",
        fill={"scalar_coupling_constant": 0},
        group="molecule_name",
        joined=True,
        answers="answers.csv",
        files=[molecules],
    ),
    metric=Metric(grader="group-log-mae", options={"group": "type", "match": "join"}),
)
