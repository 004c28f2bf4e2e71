"""Competitions on real datasets shipped with scikit-learn: no account, no download, no Docker."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2

COMPETITIONS = {
    "breast-cancer": "breast_cancer",
    "cell-nuclei": "cell_nuclei",
    "diabetes": "diabetes",
    "digits": "digits",
    "wine": "wine",
}
"""Task id → folder of its declaration."""
PROGRAMS = ("digits-code", "breast-cancer-model", "wine-service", "wine-tasting")
"""Tasks whose submission is a program."""


@hookimpl
def mleredux_register_tasks() -> Iterable[Ref]:
    """Register the competitions, which are imported when used."""
    tables = [Ref(task, f"mleredux_competition_starter.{folder}:competition") for task, folder in COMPETITIONS.items()]
    names = {task: task.replace("-", "_") for task in PROGRAMS}
    return [
        *tables,
        *(Ref(task, f"mleredux_competition_starter.programs.tasks:{name}") for task, name in names.items()),
    ]
