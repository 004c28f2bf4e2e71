"""Shared parts of the starter competitions' declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mleredux.plugin.task import Competition, Direction, Metric, Submission, Thresholds

ANSWERS = "answers.csv"
_UCI = "https://archive.ics.uci.edu/dataset/"
SOURCES = {"load_breast_cancer": f"{_UCI}17", "load_digits": f"{_UCI}80", "load_wine": f"{_UCI}109"}
"""Where the license of the data returned by these scikit-learn functions is stated."""


def starter(
    task: str,
    folder: Path,
    *,
    title: str,
    fetch: Callable[[Path], None],
    prepare: Callable[[Path, Path, Path], None],
    targets: Sequence[str],
    grader: str,
    direction: Direction,
    thresholds: Thresholds,
    md5: Mapping[str, str],
    known_answers: str,
    category: str = "Tabular",
    license: str | None = "CC-BY-4.0",
    tags: Sequence[str],
) -> Competition:
    """Declare a small, public competition with its descriptions and its leaderboard in a folder.

    Args:
        task: The task's id.
        folder: Contains `description.md`, `description_obfuscated.md` and `leaderboard.csv`.
        targets: Columns of the submission besides `id`.
        grader: The metric's id.
        md5: Checksum of each prepared file; `answers.csv` is private, the others are public.
        known_answers: The function of scikit-learn that returns all rows.
        license: License of the data (SPDX); by default that of the UCI repository.
        tags: The task's tags; `public-answers` is added.
    """
    return Competition(
        id=task,
        title=title,
        description=folder / "description.md",
        description_obfuscated=folder / "description_obfuscated.md",
        fetch=fetch,
        prepare=prepare,
        submission=Submission(id_columns=("id",), target_columns=tuple(targets)),
        answers=ANSWERS,
        known_answers=(known_answers,),
        metric=Metric(grader=grader),
        direction=direction,
        category=category,
        license=license,
        license_source=SOURCES.get(known_answers.rpartition(".")[2]),
        complexity="low",
        sets=("starter",),
        tags=(*tags, "public-answers"),
        leaderboard=folder / "leaderboard.csv",
        thresholds=thresholds,
        checksums={
            "public": {name: value for name, value in md5.items() if name != ANSWERS},
            "private": {ANSWERS: md5[ANSWERS]},
        },
    )
