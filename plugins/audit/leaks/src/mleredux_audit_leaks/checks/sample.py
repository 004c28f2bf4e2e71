"""The sample submission, which should be constant, or at least no better than a shuffled one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import column_skill
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Truth, normal_values

LEAST = 0.05
ROWS = 6000


def check_sample(truth: Truth, tables: list[Table], seed: int) -> Iterator[AuditFinding]:
    """Check whether the target columns of the sample vary, and whether they predict the answers."""
    name = truth.task.submission.sample
    samples = [table for table in tables if truth.is_sample(table.name)]
    sample = next((table for table in samples if table.name == name), next(iter(samples), None))
    if sample is None:
        return
    rows = truth.rows_of(sample.frame)
    if rows is None and len(sample.frame) == len(truth):
        rows = np.arange(len(truth))
    if rows is None:
        return
    meeting = np.flatnonzero(rows >= 0)[:ROWS]
    varied = []
    for column in [c for c in truth.target_columns if c in sample.frame]:
        if sample.frame[column].iloc[meeting].nunique() <= 1:
            continue
        varied.append(column)
        target = next((candidate for candidate in truth.targets if candidate.name == column), None)
        if target is None:
            continue
        cells = normal_values(sample.frame[column]).iloc[meeting]
        equal = float((cells.to_numpy() == target.values.to_numpy()[rows[meeting]]).mean())
        if target.labels.kind == "text":
            if equal > 0.5:
                yield _finding(sample.name, column, "high", Statistic(name="share right", value=equal, threshold=0.5))
            continue
        judged = column_skill(pd.Series(cells), target.labels.take(rows[meeting]), least=LEAST, seed=seed)
        if judged:
            severity = "high" if judged.value >= 0.3 else "medium"
            yield _finding(sample.name, column, severity, judged.statistic("skill", LEAST))
    if varied:
        figure = Statistic(name="columns that vary", value=len(varied), baseline=0, threshold=1)
        message = f"The sample submission is not constant in {', '.join(map(repr, varied[:3]))}."
        yield AuditFinding(kind="sample", severity="low", message=message, statistic=figure, examples=(sample.name,))


def _finding(name: str, column: str, severity: str, statistic: Statistic) -> AuditFinding:
    return AuditFinding(
        kind="sample",
        severity=severity,
        message=f"Column {column!r} of the sample submission reveals the answers.",
        statistic=statistic,
        examples=(name,),
    )
