"""Cross-validate the candidates within the time limit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from mleredux_agent_baseline.features import Features
from mleredux_agent_baseline.fit import fit_predict
from mleredux_agent_baseline.metrics import Array, Metric, metric_for
from mleredux_agent_baseline.models import Candidate
from mleredux_agent_baseline.problem import Head

MANY_CELLS, TOO_MANY_CELLS = 3_000_000, 20_000_000
"""Numbers of cells (rows times columns) above which three folds, or a single fold, are used."""


class OutOfTime(Exception):
    """There is too little time for the remaining folds."""


@dataclass
class Trial:
    """One candidate, cross-validated.

    Attributes:
        score: The task's metric, or its substitute, averaged over the targets that were tried.
        spread: Standard deviation over the folds.
        fold_scores: Averages over the targets, for each fold.
        by_target: The score of each target.
        fit_seconds: Estimated time for fitting it to all rows, in seconds.
    """

    candidate: Candidate
    score: float = float("nan")
    spread: float = 0.0
    fold_scores: list[float] = field(default_factory=list)
    by_target: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


class Search:
    """The folds, and the predictions of held-out rows.

    Args:
        features: Features of the training rows.
        metric: Name of the task's metric.
        end: Unix time at which the search must be over.
    """

    def __init__(
        self, features: Features, heads: list[Head], metric: str, *, folds: int, seed: int, threads: int, end: float
    ) -> None:  # fmt: skip
        self.features, self.heads, self.metric = features, heads, metric
        self.seed, self.threads, self.end = seed, threads, end
        self.folds = make_folds(heads, *features.train.shape, folds, seed)
        self.held_out = np.concatenate([held for _, held in self.folds])
        self.predictions: list[dict[str, Array]] = [{} for _ in heads]
        self.metrics = [metric_for(metric, classes=bool(head.classes), labels=head.form == "label") for head in heads]

    def truth(self, head: int) -> Array:
        """Return the target of the held-out rows, in the order of the predictions."""
        return np.asarray(self.heads[head].y[self.held_out])

    def try_candidate(self, candidate: Candidate, heads: list[int]) -> Trial:
        """Cross-validate a candidate on these targets.

        Raises:
            OutOfTime: The first fold shows that the rest would take too long.
            Exception: Any exception of the model.
        """
        x = self.features.get(candidate.features)[0]
        trial, started = Trial(candidate), time.time()
        parts: dict[int, list[Array]] = {head: [] for head in heads}
        fold_scores: dict[int, list[float]] = {head: [] for head in heads}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for fold, (train, held) in enumerate(self.folds):
                for head in heads:
                    self._stop_if_late(started, fold / len(self.folds))
                    target = self.heads[head]
                    prediction = fit_predict(
                        candidate, target, x[train], train, [x[held]], self.metric, self.seed, self.threads
                    )[0]
                    if not np.isfinite(prediction).all():
                        raise ValueError("the model predicts numbers that are not finite")
                    parts[head].append(prediction)
                    fold_scores[head].append(self.metrics[head].score(target.y[held], prediction))
        trial.seconds = time.time() - started
        trial.fit_seconds = trial.seconds / max(len(self.folds) - 1, 1)
        trial.warnings = sorted({str(warning.message).splitlines()[0] for warning in caught})[:3]
        for head in heads:
            self.predictions[head][candidate.name] = np.concatenate(parts[head])
            score = self.metrics[head].score(self.truth(head), self.predictions[head][candidate.name])
            trial.by_target[self.heads[head].name] = score
        trial.score = float(np.mean(list(trial.by_target.values())))
        trial.fold_scores = [float(np.mean(scores)) for scores in zip(*fold_scores.values(), strict=True)]
        trial.spread = float(np.std(trial.fold_scores))
        return trial

    def _stop_if_late(self, started: float, done: float) -> None:
        now = time.time()
        if now > self.end or (done > 0 and started + (now - started) / done > self.end):
            raise OutOfTime

    @property
    def main_metric(self) -> Metric:
        """The metric of the first target, for logs."""
        return self.metrics[0]


def make_folds(heads: list[Head], rows: int, columns: int, count: int, seed: int) -> list[tuple[Array, Array]]:
    """Return pairs of training and held-out rows, stratified if there is a single target with classes.

    Raises:
        ValueError: There are fewer than four rows.
    """
    if rows < 4:
        raise ValueError(f"{rows} training rows are too few to learn from")
    cells = rows * max(columns, 1)
    count = max(2, min(count, rows // 2, 3 if cells > MANY_CELLS else count))
    y = heads[0].y
    if len(heads) == 1 and heads[0].classes and np.bincount(y).max() >= count:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            splits = list(StratifiedKFold(count, shuffle=True, random_state=seed).split(np.zeros(rows), y))
    else:
        splits = list(KFold(count, shuffle=True, random_state=seed).split(np.zeros(rows)))
    return splits[:1] if cells > TOO_MANY_CELLS else splits
