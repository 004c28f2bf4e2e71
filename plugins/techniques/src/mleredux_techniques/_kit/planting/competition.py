"""Planted and synthetic competitions: declaration, files, and a leaderboard of reference pipelines."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mleredux.errors import NotApplicable
from mleredux.plugin.task import Competition, Submission, Task

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.data.threads import one_thread
from mleredux_techniques._kit.judging.plans import across, loss
from mleredux_techniques._kit.judging.reference import MODELS
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.planting.composition import ID, keep, planted
from mleredux_techniques._kit.planting.pictures import keep_sketches
from mleredux_techniques._kit.planting.seeds import Seed
from mleredux_techniques._kit.vocabulary import encoders, imputers, scalers
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing
from mleredux_techniques.texts import rendered

REVISION = "6"
"""Part of the version of all planted tasks; increased whenever the data for a seed changes."""
TRAIN, TEST, SAMPLE, ANSWERS, BOARD = (
    "train.csv", "test.csv", "sample_submission.csv", "answers.csv", "leaderboard.csv"
)  # fmt: skip


class PlantedCompetition(Competition):
    """A competition on generated rows with a metric, a private test set, and known truth for all techniques."""

    origin: str
    """The competition that the rows resemble."""

    def describe(self, *, obfuscated: bool = False) -> str:
        """Return the description for the agent."""
        origin = "those of another competition" if obfuscated else self.origin
        return rendered(
            "planted.md.j2",
            title="Generated rows" if obfuscated else self.title,
            target=", ".join(self.submission.target_columns) or "the target",
            metric=self.metric.id,
            better="higher" if self.direction == "maximize" else "lower",
            origin=origin,
        )


def planted_competition(base: Task, seed: Seed) -> PlantedCompetition:
    """Return the task `base+planted-SEED`.

    Raises:
        NotApplicable: The base is not a competition.
    """
    if base.kind == "technique" or "planted" in base.tags:
        raise NotApplicable(f"Nothing can be planted in {base.id}.", hint="Choose a competition with its own data.")
    name = f"planted-{'public-' if seed.public else ''}{seed.number}"
    return PlantedCompetition(
        id=f"{base.id.replace('+', '-')}+{name}",
        version=f"{base.version}+planted{REVISION}.{seed.mark}",
        title=f"Rows like those of {base.title}",
        description=base.description,
        description_obfuscated=base.description,
        origin=f"the competition {base.title}",
        prepare=partial(_prepare_planted, base=base, seed=seed),
        base=base,
        tags=("planted",),
        note=seed.note,
        **shared(base),
    )


def shared(base: Task) -> dict[str, Any]:
    """Return the fields that a generated competition shares with its base."""
    return {
        "submission": Submission(
            id_columns=(base.submission.id_columns or (ID,))[:1],
            target_columns=base.submission.target_columns,
            types=base.submission.types,
        ),
        "answers": ANSWERS,
        "metric": base.metric,
        "direction": base.direction,
        "category": "Tabular",
        "complexity": base.complexity,
    }


def _prepare_planted(raw: Path, public: Path, private: Path, *, base: Task, seed: Seed) -> None:
    dataset, _source = discover(base, raw)
    name = f"{base.id}+planted-{'public-' if seed.public else ''}{seed.number}"
    competition = replace(planted(dataset, base, seed), task=name)
    write(competition, base, public, private)
    keep(competition, private)
    if dataset.thumbnail:
        keep_sketches(replace(dataset, task=name), seed.generator(base.id, "pictures"), private)


def write(dataset: Dataset, base: Task, public: Path, private: Path) -> None:
    """Write the files of a competition with these rows, and its leaderboard.

    Raises:
        NotApplicable: The metric can't be computed for rows other than the base's test rows.
    """
    metric = scorer(dataset, base)
    if metric.substitute:
        raise NotApplicable(f"The metric {base.metric.id} of {base.id} can't be computed for other rows.")
    write_tables(dataset, public)
    test = dataset.test
    answers: dict[str, Any] = {}
    sample: dict[str, Any] = {}
    known = dataset.train[dataset.target]
    for name in dataset.outputs:
        if name == dataset.target:
            usual: dict[str, Any] = {"numbers": known.median, "labels": lambda: known.mode().iloc[0]}
            answers[name], sample[name] = test[name], usual.get(metric.form, lambda: 0.5)()
        elif name in test:
            answers[name], sample[name] = test[name], float(dataset.train[name].median())
        else:
            answers[name] = (test[dataset.target].astype(str) == class_name(name)).astype(int)
            sample[name] = 1 / len(dataset.outputs)
    rows = test[[dataset.ids[0]]]
    rows.assign(**answers).to_csv(private / ANSWERS, index=False, lineterminator="\n")
    rows.assign(**sample).to_csv(public / SAMPLE, index=False, lineterminator="\n")
    scores = sorted(board(Instance(dataset, {}, base)), reverse=base.direction == "maximize")
    (private / BOARD).write_text("score\n" + "".join(f"{score:.6f}\n" for score in scores), encoding="utf-8")


def write_tables(dataset: Dataset, public: Path, train: str = TRAIN, test: str | None = TEST) -> None:
    """Write the training and the test table; booleans are written as True and False."""
    booleans = [name for name, kind in dataset.kinds.items() if kind == "boolean"]
    for path, frame in ((train, dataset.train), (test or TEST, dataset.test.drop(columns=list(dataset.targets)))):
        printed = frame.assign(**{column: frame[column].map({1.0: "True", 0.0: "False"}) for column in booleans})
        printed.to_csv(public / path, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def board(instance: Instance) -> list[float]:
    """Return the private scores of reference pipelines: a constant, and each model with all columns or without leaks.

    Pipelines with all columns use mean imputation and standardization; those without leaks use missing indicators,
    target encoding and ranks.
    """
    metric = scorer(instance.dataset, instance.base)
    scores = [metric.constant]
    careful = _careful(instance.dataset)
    leaking = {name for leak in instance.dataset.planted.get("leaks", ()) for name in leak["columns"]}
    kept = tuple(name for name in careful if name not in leaking)
    with one_thread():
        for dataset, plan in ((instance.dataset, {}), (replace(instance.dataset, features=kept), careful)):
            data = across(dataset)
            losses = loss(instance, data, data.splits[0], plan, MODELS)
            scores += [metric.shown(float(value)) for value in losses]
    return scores


def _careful(dataset: Dataset) -> dict[str, Any]:
    marked = imputers.SimpleImputer(name="SimpleImputer", strategy="median", add_indicator=True)
    ranks = scalers.QuantileTransformer(name="QuantileTransformer", output_distribution="normal")
    means = encoders.TargetEncoder(name="TargetEncoder")
    numbers = {name: Preprocessing(imputation=marked, scaler=ranks) for name in dataset.of_kind("number")}
    return {**numbers, **{name: Preprocessing(encoding=means) for name in dataset.of_kind("text")}}
