"""Confined execution of scripts on variations of the tables, and the errors they make there.

Each variation omits a part of the training rows, and randomly exchanges the targets of some rows of both tables, so
that neither predictions nor a validation score can be hard-coded in a script.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mleredux_programs import run_confined

from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Instance
from mleredux_techniques._kit.data.splits import class_names, outputs
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques.debugging.scripts import SUBMISSION, VALIDATION

EXCHANGED = (0.0, 0.1, 0.2, 0.05)
"""Share of the rows whose targets are exchanged, by variation."""
OVERLAP = 1 / (len(EXCHANGED) - 1)
"""Ratio of omitted to remaining rows, as for folds."""
SECONDS = 300.0
"""Limit of wall time in seconds for each script on all variations; `runner.py` limits the CPU time."""
_MOST_BYTES = 4 << 20


def losses(instance: Instance, metric: str, texts: Sequence[str]) -> Array:
    """Return losses for the results of scripts, of shape (scripts, variations); infinite without results.

    A loss is the predictions' loss in the competition's metric, plus the distance between the validation score and
    the predictions' score in the script's metric, both in units of the learnable range.

    Raises:
        SandboxError: This machine does not allow processes to be confined.
    """
    dataset = instance.dataset
    tables = [_variation(dataset, number) for number in range(len(EXCHANGED))]
    inputs = {f"script-{number}.py": text.encode() for number, text in enumerate(texts)}
    inputs["runner.py"] = Path(__file__).with_name("runner.py").read_bytes()
    for number, (train, test) in enumerate(tables):
        inputs[f"train.csv-{number}"] = train.to_csv(index=False).encode()
        inputs[f"test.csv-{number}"] = test.drop(columns=list(dataset.targets)).to_csv(index=False).encode()
    places = [(script, variation) for script in range(len(texts)) for variation in range(len(tables))]
    wanted = {f"{name}-{script}-{variation}" for script, variation in places for name in (SUBMISSION, VALIDATION)}
    arguments = ["runner.py", str(len(texts)), str(len(tables))]
    outputs = run_confined(arguments, inputs, wanted, seconds=SECONDS * len(texts), disk_mb=64).files
    losses_of = np.full((len(texts), len(tables)), np.inf)
    for script, variation in places:
        files = [outputs.get(f"{name}-{script}-{variation}", b"") for name in (SUBMISSION, VALIDATION)]
        try:
            losses_of[script, variation] = _loss(instance, metric, tables[variation][1], *files)
        except Exception:  # a script may write anything
            continue
    return losses_of


def _variation(dataset: Dataset, number: int) -> tuple[Frame, Frame]:
    """Return the training and the test rows of a variation, with their targets."""
    rng = np.random.default_rng(number)
    kept = rng.permutation(len(dataset.train)) % len(EXCHANGED) != number
    train, test = dataset.train[kept].reset_index(drop=True), dataset.test.copy()
    for frame in (train, test):
        rows = rng.permutation(len(frame))[: round(EXCHANGED[number] * len(frame))]
        values = frame[dataset.target].to_numpy(copy=True)
        values[rows] = values[rng.permutation(rows)]
        frame[dataset.target] = values
    return train, test


def _loss(instance: Instance, metric: str, test: Frame, submission: bytes, validation: bytes) -> float:
    import pandas as pd

    dataset = instance.dataset
    if max(len(submission), len(validation)) > _MOST_BYTES:
        raise ValueError("The results are too large.")
    row, classes = dataset.ids[0], dataset.problem != "regression"
    submitted = pd.read_csv(io.BytesIO(submission)).set_index(row).loc[test[row]]
    names = class_names(dataset) if classes else ("prediction",)
    missing = [name for name in names if name not in submitted]
    predicted = submitted.assign(**dict.fromkeys(missing, 0.0))[list(names)].to_numpy(dtype=float)
    stated = float(json.loads(validation)["score"])
    if len(submitted) != len(test) or not np.isfinite(predicted).all() or not np.isfinite(stated):
        raise ValueError("A row has no prediction.")
    truth = outputs(dataset, test)[1]
    judge = scorer(dataset, instance.base)
    perfect = judge.shown(judge.perfect)
    loss = (judge.loss(test, truth, predicted) - perfect) / judge.unit
    constant = np.eye(len(names))[truth].mean(axis=0) if classes else np.array([truth.mean()])
    level = scored(metric, np.tile(constant, (len(truth), 1)), truth)
    best = scored(metric, np.eye(len(names))[truth] if classes else truth[:, None], truth)
    return float(loss + abs(stated - scored(metric, predicted, truth)) / abs(best - level))


def scored(metric: str, predicted: Array, truth: Array) -> float:
    """Return the score in a script's metric (`blocks.toml`)."""
    if metric in ("log_loss", "log_likelihood"):
        likelihood = np.log(np.clip(predicted[np.arange(len(truth)), truth], 1e-6, 1)).mean()
        return float(likelihood if metric == "log_likelihood" else -likelihood)
    if metric == "accuracy":
        return float((predicted.argmax(axis=1) == truth).mean())
    errors = predicted[:, 0] - truth
    if metric == "mae":
        return float(np.abs(errors).mean())
    return float(np.sqrt((errors**2).mean()) if metric == "rmse" else 1 - (errors**2).mean() / truth.var())
