"""Four tasks: a predictor of digits, a model of tumors, a service for wines, and a policy that tastes wines."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Metric
from mleredux_programs import MEAN_RETURN, Execution

from mleredux_competition_starter import breast_cancer, digits, wine
from mleredux_competition_starter.programs.cellar import Tasting
from mleredux_competition_starter.programs.declaration import add_sample, held, program_task
from mleredux_competition_starter.tables import read_table, split_table, write_table

EPISODES = 53
SAMPLE_EPISODES = 10


split_wines = partial(split_table, targets=["cultivar"], sample={"cultivar": "cultivar_1"}, stratify=True)
"""Holds out 30 % of each cultivar; answers are names."""


def prepare_tasting(raw: Path, public: Path, private: Path) -> None:
    """Hold out the wines of the private episodes; an episode is the row of `cellar.csv` with the number of its seed."""
    split_wines(raw, public, private, salt="wine-tasting/1")
    columns, tested = read_table(public / "test.csv")
    names = dict(read_table(private / "answers.csv")[1])
    write_table(private / "cellar.csv", [*columns, "cultivar"], [[*row, names[row[0]]] for row in tested])
    write_table(private / "inputs.csv", ["seed"], [[str(seed)] for seed in range(EPISODES)])
    write_table(private / "answers.csv", ["seed"], [[str(seed)] for seed in range(EPISODES)])
    (public / "train.csv").rename(public / "cellar.csv")
    write_table(public / "sample_inputs.csv", ["seed"], [[str(seed)] for seed in range(SAMPLE_EPISODES)])
    for name in ("test.csv", "sample_submission.csv"):
        (public / name).unlink()
    add_sample("wine-policy", public)


digits_code = program_task(
    "digits-code",
    title="Handwritten digits, as code",
    fetch=digits.fetch,
    prepare=held(digits.prepare, "digits-code"),
    targets=("digit",),
    metric=Metric(grader="accuracy"),
    execution=Execution(kind="code", public=("train.csv",), seconds=60, memory_mb=1_024, size_mb=1),
    known_answers="sklearn.datasets.load_digits",
    category="Image Classification",
)
breast_cancer_model = program_task(
    "breast-cancer-model",
    title="Breast tumors, as a model of at most 64 KiB",
    fetch=breast_cancer.fetch,
    prepare=held(breast_cancer.prepare, "breast-cancer-model"),
    targets=("malignant",),
    metric=Metric(grader="roc-auc"),
    execution=Execution(kind="model", seconds=30, memory_mb=1_024, size_mb=0.0625),
    known_answers="sklearn.datasets.load_breast_cancer",
)
wine_service = program_task(
    "wine-service",
    title="Wine cultivars, as a service",
    fetch=wine.fetch,
    prepare=held(partial(split_wines, salt="wine-service/1"), "wine-service"),
    targets=("cultivar",),
    metric=Metric(grader="accuracy"),
    execution=Execution(
        kind="service",
        public=("train.csv",),
        seconds=60,
        memory_mb=1_024,
        size_mb=1,
        missing="none",
        clients=8,
        requests=400,
        deadline=1.0,
    ),
    known_answers="sklearn.datasets.load_wine",
)
wine_tasting = program_task(
    "wine-tasting",
    title="Wine cultivars from few measurements, as a policy",
    fetch=wine.fetch,
    prepare=prepare_tasting,
    ids=("seed",),
    targets=("return",),
    metric=Metric(grader=MEAN_RETURN.model_copy(update={"perfect": 1.0})),
    execution=Execution(
        kind="policy", public=("cellar.csv",), seconds=60, memory_mb=1_024, size_mb=1, environment=Tasting
    ),
    known_answers="sklearn.datasets.load_wine",
    known=("cultivar", "cellar.csv"),
)
