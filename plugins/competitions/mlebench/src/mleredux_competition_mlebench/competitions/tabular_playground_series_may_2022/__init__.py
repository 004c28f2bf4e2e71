"""Tabular Playground Series, May 2022: the simulated state of a machine; test ids continue after training ids."""

from ...blocks import Metric, Table, TableSplit, Workspace, competition, renumbered


def renumber(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Assign new ids that run through both parts."""
    return renumbered(train, "id"), renumbered(test, "id", len(train))


COMPETITION = competition(
    "tabular-playground-series-may-2022",
    prepare=TableSplit(
        ids="id", targets="target", fill={"target": 0.5}, test_size=100_000, after=renumber, gold="gold_submission.csv"
    ),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
