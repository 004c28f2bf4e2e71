"""Synthetic competitions: tables with known structure, generated from a seed, so that memorization does not help."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mleredux.plugin.task import Metric, Submission, Task

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.planting.competition import ANSWERS, REVISION, PlantedCompetition, write
from mleredux_techniques._kit.planting.composition import ID, keep, planted
from mleredux_techniques._kit.planting.seeds import NUMBER, Seed

NAME = re.compile(rf"synthetic-(easy-|hard-)?(public-)?{NUMBER}")
NOISE = {"easy": 0.5, "medium": 1.0, "hard": 2.0}
"""Standard deviation of the target's noise by difficulty, relative to that of the features' contribution."""
METRICS = (("log-loss", "minimize"), ("f1", "maximize"), ("rmse", "minimize"))
TARGET = "target"
_ROWS = 1_200


def synthetic_competition(name: str) -> PlantedCompetition | None:
    """Return the competition `synthetic[-easy|-hard][-public]-SEED`; None for other names."""
    if (match := parsed(NAME, name)) is None:
        return None
    seed, difficulty = match
    grader, direction = METRICS[int(seed.generator("metric", difficulty).integers(len(METRICS)))]
    competition = generated_competition(name, f"Synthetic table {seed.number} ({difficulty})", seed, grader, direction)
    prepare = partial(_prepare, base=competition, seed=seed, difficulty=difficulty)
    return competition.model_copy(update={"version": f"{REVISION}.{seed.mark}", "prepare": prepare})


def parsed(pattern: re.Pattern[str], name: str) -> tuple[Seed, str] | None:
    """Return the seed and the difficulty in a name; None if it does not match or there is no such seed."""
    match = pattern.fullmatch(name)
    seed = Seed.of(match[3], public=bool(match[2])) if match else None
    return (seed, (match[1] or "medium-").rstrip("-")) if match and seed else None


def generated_competition(name: str, title: str, seed: Seed, grader: str, direction: Any) -> PlantedCompetition:
    """Return the declaration of a generated table, without its version and its preparation."""
    return PlantedCompetition(
        id=name,
        title=title,
        description=Path(__file__),
        description_obfuscated=Path(__file__),
        origin="no other table",
        fetch=fetch,
        submission=Submission(id_columns=(ID,), target_columns=(TARGET,)),
        answers=ANSWERS,
        metric=Metric(grader=grader),
        direction=direction,
        license="CC0-1.0",
        tags=("planted", "synthetic"),
        note=seed.note,
    )


def fetch(raw: Path) -> None:
    """Do nothing: generated tables have no raw data."""
    (raw / "empty.txt").write_text("Synthetic tables need no raw data.\n", encoding="utf-8")


def _prepare(raw: Path, public: Path, private: Path, *, base: Task, seed: Seed, difficulty: str) -> None:
    instance = planted(table(base, seed.generator("table", difficulty), NOISE[difficulty]), base, seed)
    structure = {**instance.planted, "difficulty": difficulty}
    instance = replace(instance, task=base.id, planted=structure)
    write(instance, base, public, private)
    keep(instance, private)


def table(base: Task, rng: np.random.Generator, noise: float) -> Dataset:
    """Return rows whose target is a noisy smooth function of some features, including the product of two."""
    import pandas as pd

    count = int(rng.integers(8, 15))
    x = rng.standard_normal((_ROWS, count)) @ (np.eye(count) + 0.3 * rng.standard_normal((count, count)))
    weights = rng.standard_normal(count) * (rng.random(count) < 0.6)
    level = x @ weights + x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2])
    level = level / level.std() + noise * rng.standard_normal(_ROWS)
    names = [f"f{place}" for place in range(count)]
    frame = pd.DataFrame(np.round(x * rng.uniform(0.5, 30, count) + rng.uniform(-20, 20, count), 3), columns=names)
    numeric = base.metric.id == "rmse"
    share = float(rng.uniform(0.35, 0.65))
    target: Any = np.round(100 + 25 * level, 2) if numeric else (level > np.quantile(level, share)).astype(int)
    frame[TARGET] = target if numeric else target.astype(str).astype(object)
    return Dataset(
        task=base.id, problem="regression" if numeric else "binary", train=frame, test=frame.iloc[:0], target=TARGET,
        targets=(TARGET,), ids=(), features=tuple(names), kinds=dict.fromkeys(names, "number"), outputs=(TARGET,),
        metric=base.metric.id, direction=base.direction, train_rows=_ROWS,
    )  # fmt: skip
