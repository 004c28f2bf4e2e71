"""A plugin that registers the natural tables as competitions, for tests only."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from mleredux.hookspecs import hookimpl
from mleredux.models import Competition, Metric, Submission, Task

sys.path.insert(0, str(Path(__file__).parents[1]))
from natural import Natural
from natural.tables import TABLES


def competition(table: Natural) -> Competition:
    """The competition that a host makes of a table: four files, ids that follow a random order."""

    def fetch(raw: Path) -> None:
        rows = table.load()
        rows.assign(held_out=table.held_out(rows)).to_csv(raw / "table.csv", index=False)

    def prepare(raw: Path, public: Path, private: Path) -> None:
        rows = pd.read_csv(raw / "table.csv")
        if not table.sorted:
            rows = rows.sample(frac=1, random_state=2)
        rows.insert(0, "id", np.arange(len(rows)))
        held_out = rows.pop("held_out")
        train, test = rows[~held_out], rows[held_out]
        train.to_csv(public / "train.csv", index=False)
        test.drop(columns=table.target).to_csv(public / "test.csv", index=False)
        answers = test[["id", table.target]]
        answers.to_csv(private / "answers.csv", index=False)
        sample = answers.assign(**{table.target: train[table.target].iloc[0]})
        sample.to_csv(public / "sample_submission.csv", index=False)

    return Competition(
        id=f"natural-{table.id}",
        title=f"The natural table {table.id}",
        description=Path(__file__).with_name("natural.md"),
        fetch=fetch,
        prepare=prepare,
        submission=Submission(id_columns=("id",), target_columns=(table.target,)),
        metric=Metric(grader=table.metric),
        direction="minimize" if table.minimize else "maximize",
        **table.fields,
    )


@hookimpl
def mleredux_register_tasks() -> list[Task]:
    return [competition(table) for table in TABLES.values()]
