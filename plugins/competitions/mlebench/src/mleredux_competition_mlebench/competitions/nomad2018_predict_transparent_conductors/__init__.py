"""Nomad2018 Predicting Transparent Conductors: a table, and the geometry of every material."""

from ...blocks import Metric, Table, TableSplit, Workspace, competition, corrected, renumbered

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")


def geometries(w: Workspace, train: Table, test: Table) -> None:
    """Send each material's folder to its part, under its new number."""
    tree = w.tree("train.zip", inside="train")
    for part, rows in (("train", train), ("test", test)):
        numbers = range(1, len(rows) + 1)
        w.public(part, tree.pick(rows["id"].astype(str) + "/geometry.xyz", [f"{n}/geometry.xyz" for n in numbers]))


def renumber(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Assign new ids, from 1 in each part."""
    return renumbered(train, "id", 1), renumbered(test, "id", 1)


COMPETITION = competition(
    "nomad2018-predict-transparent-conductors",
    prepare=TableSplit(
        archive="train.csv.zip",
        ids="id",
        targets=TARGETS,
        fill={"formation_energy_ev_natom": 0.1779, "bandgap_energy_ev": 1.8892},
        files=[geometries],
        after=renumber,
    ),
    id_columns=(),
    metric=Metric(grader="rmsle", options={"match": "position"}),
    fixed=corrected(
        metric=Metric(grader="rmsle"),
        submission={"id_columns": ("id",)},
    ),
)
