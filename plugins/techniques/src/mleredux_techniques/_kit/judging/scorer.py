"""The competition's own metric as the loss of predictions: its grader scores a submission file for held-out rows.

The form that the metric expects is determined by submitting the truth: one column per class, scores between 0 and 1,
labels or numbers. With several numeric targets, the first is scored by itself, and the report states this. If the
metric can't be computed this way, or not for individual training rows (it scores boxes, or needs columns that the
table lacks), a standard metric for the same kind of target is used instead, and the report names it.
"""

from __future__ import annotations

import io
import math
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.grader import Grader, GradingInput, Score
from mleredux.plugin.task import Metric, Submission, Task
from mleredux_tables import Table, read_table

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, remembered
from mleredux_techniques._kit.data.splits import class_names

Form = Literal["class columns", "scores", "labels", "numbers"]
"""The predictions that a metric expects: class probabilities, a score for the second class, classes, or numbers."""

ROW = "mleredux row"
PROBED = 400
"""Maximum number of training rows submitted to find out which form the metric expects."""
SOFT = 0.75
WORST = 5.0
"""Losses are clipped at this multiple of a constant's loss, so that one split does not outweigh all others."""
_EPSILON = 1e-6
_SUBSTITUTES: dict[str, str] = {"classes": "log-loss", "labels": "balanced-accuracy", "numbers": "rmse"}


@dataclass(frozen=True)
class Scorer:
    """A metric, applied to rows of a dataset.

    Attributes:
        task: A task for these rows, with the competition's metric.
        form: The form of predictions that the metric expects.
        names: The class of each code; empty for numbers.
        positive: The code of the class that `scores` refer to.
        perfect: Score of the truth on the training rows.
        constant: Score of the best constant there.
        substitute: Whether the competition's own metric could not be computed.
        single: Whether the metric is applied to one of several targets.
    """

    task: Task
    form: Form
    names: tuple[str, ...]
    positive: int
    perfect: float
    constant: float
    substitute: bool
    single: bool = False
    _texts: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False, repr=False)
    _truths: dict[bytes, tuple[dict[str, Any], Table | None]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def asked(self) -> Form:
        """Return `form`, under its former name."""
        warnings.warn(
            "Scorer.asked is now form; the old name will be removed in 0.4.", DeprecationWarning, stacklevel=2
        )
        return self.form

    @property
    def unit(self) -> float:
        """Return the loss of a constant minus that of the truth: the learnable range."""
        return abs(self.constant - self.perfect)

    @property
    def title(self) -> str:
        """Return the metric with its direction."""
        better = "higher" if self.task.direction == "maximize" else "lower"
        column = f" of {self.task.submission.target_columns[0]} alone" if self.single else ""
        name = f"{self.task.metric.id}{column} ({better} is better)"
        return f"{name}; the competition's own metric can't be computed here" if self.substitute else name

    def shown(self, loss: float) -> float:
        """Convert a loss back to the metric's score."""
        return -loss if self.task.direction == "maximize" else loss

    def loss(self, frame: Frame, truth: Array, predicted: Array) -> float:
        """Return the loss: the score, negated if higher is better.

        Args:
            frame: The rows to score.
            truth: Class codes, or numbers, of shape (rows,).
            predicted: Probabilities of shape (rows, classes), or numbers of shape (rows, 1).
        """
        score = self.score(frame, truth, predicted)
        score = self.constant if math.isnan(score) else score
        return min(self.shown(score), self.shown(self.perfect) + WORST * self.unit)

    def score(self, frame: Frame, truth: Array, predicted: Array) -> float:
        """Return the metric's score of predictions.

        Raises:
            MlereduxError: The metric can't be computed.
        """
        wanted, options = self.task.submission.target_columns, self.task.metric.options
        text, every = repr(options), frame.columns if options else filter(frame.columns.__contains__, wanted)
        needed = [name for name in every if name in wanted or name in text]
        key = truth.tobytes()
        if key not in self._truths:
            true = self._true(truth)
            self._truths[key] = true, self._read(true)
        (true, theirs), submitted = self._truths[key], self._submitted(predicted)
        if self._grader.score_tables is not None and set(needed) <= {self.task.submission.id_columns[0], *true}:
            mine = self._read(submitted)
            if mine is not None and theirs is not None:
                return _value(self._grader.score_tables(mine, theirs, self.task, options))
        with tempfile.TemporaryDirectory(prefix="mleredux-scorer-") as folder:
            private = Path(folder) / "private"
            private.mkdir()
            self._table(frame[needed], true).to_csv(private / self.task.answers, index=False)
            submission = Path(folder) / self.task.submission.file
            submission_table = self._table(frame[needed], submitted)
            submission_table[[*self.task.submission.id_columns, *wanted]].to_csv(submission, index=False)
            return _value(self._grader.score(GradingInput(submission, private, self.task, options)))

    def _read(self, columns: dict[str, Any]) -> Table | None:
        """Return rows with these columns as if read from a CSV; None if the result is uncertain.

        Numbers are written and read exactly; how texts are read depends only on which texts occur.
        """
        import pandas as pd

        row, size = self.task.submission.id_columns[0], len(next(iter(columns.values())))
        columns_read = {row: _numbers(size)}
        for name, values in columns.items():
            if values.dtype.kind == "O":
                codes, texts = pd.factorize(values)
                key = tuple(map(str, texts))
                if key not in self._texts:
                    self._texts[key] = _read_texts(key)
                read = self._texts[key]
                if len(read) != len(texts):
                    return None
                columns_read[name] = pd.Series(read.take(codes), copy=False)
            elif values.dtype in (np.float64, np.int64):
                columns_read[name] = pd.Series(values, copy=False)
            else:
                return None
        return Table(columns_read)

    @cached_property
    def _grader(self) -> Grader:
        chosen = self.task.metric.grader
        grader: Grader = current().get("graders", chosen) if isinstance(chosen, str) else chosen
        return grader

    def _table(self, frame: Frame, columns: dict[str, Any]) -> Frame:
        """Return rows with the given columns, and all others that the metric may need."""
        import pandas as pd

        row = self.task.submission.id_columns[0]
        others = {name: frame[name].to_numpy() for name in frame.columns if name not in (row, *columns)}
        return pd.DataFrame({row: np.arange(len(frame)), **others, **columns})

    def _true(self, truth: Array) -> dict[str, Any]:
        if self.form == "class columns":
            return {name: (truth == code).astype(int) for name, code in self._columns()}
        values = truth if self.form == "numbers" else np.array(self.names, dtype=object)[truth]
        return {self.task.submission.target_columns[0]: values}

    def _submitted(self, predicted: Array) -> dict[str, Any]:
        if self.form == "numbers":
            return {self.task.submission.target_columns[0]: predicted[:, 0]}
        shares = np.clip(predicted, _EPSILON, 1.0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        if self.form == "class columns":
            none = np.full(len(shares), _EPSILON)
            table = np.column_stack([none if code is None else shares[:, code] for _name, code in self._columns()])
            table = table / table.sum(axis=1, keepdims=True)
            return {name: table[:, place] for place, (name, _code) in enumerate(self._columns())}
        if self.form == "scores":
            return {self.task.submission.target_columns[0]: shares[:, self.positive]}
        labels = np.array(self.names, dtype=object)[predicted.argmax(axis=1)]
        return {self.task.submission.target_columns[0]: labels}

    def _columns(self) -> list[tuple[str, int | None]]:
        codes = {name: code for code, name in enumerate(self.names)}
        return [(name, codes.get(class_name(name))) for name in self.task.submission.target_columns]


def _value(score: Score | float) -> float:
    return float(score if isinstance(score, float | int) else score.value)


@lru_cache(maxsize=16)
def _numbers(size: int) -> Any:
    """Return row numbers; graders need not compare a column with itself."""
    import pandas as pd

    return pd.Series(np.arange(size, dtype=np.int64), copy=False)


def _read_texts(texts: tuple[str, ...]) -> Any:
    """Return texts as a grader reads them from a CSV column."""
    import pandas as pd

    written = pd.DataFrame({ROW: np.arange(len(texts)), "text": np.array(texts, dtype=object)}).to_csv(index=False)
    return read_table(io.BytesIO(written.encode())).series("text").array


def scorer(dataset: Dataset, base: Task) -> Scorer:
    """Return the scorer of a dataset: based on the metric of its competition, or on a standard one."""
    return remembered(dataset, "scorer", lambda: _find(dataset, base))


def _find(dataset: Dataset, base: Task) -> Scorer:
    substitutes = ("numbers",) if dataset.problem == "regression" else ("classes", "labels")
    for metric in (base.metric, *(Metric(grader=_SUBSTITUTES[kind]) for kind in substitutes)):
        for task, form, positive in _candidates(dataset, base, metric, own=metric is base.metric):
            names = () if form == "numbers" else class_names(dataset)
            single = form == "numbers" and len(dataset.targets) > 1
            draft = Scorer(task, form, names, positive, 0.0, 1.0, metric is not base.metric, single)
            try:
                probed = _probed(draft, dataset)
            except Exception:  # a third-party grader may raise anything on input that it does not expect
                continue
            if probed is not None:
                return probed
    raise MlereduxError(f"No metric can be computed for {dataset.target!r} of {dataset.task}.")


def _candidates(dataset: Dataset, base: Task, metric: Metric, *, own: bool) -> list[tuple[Task, Form, int]]:
    """Return submission forms that may suit the metric, the most informative first."""
    outputs = dataset.outputs if own and dataset.outputs else (dataset.target,)
    if dataset.problem == "regression":  # with several numbers, the first alone
        return [(_task(base, metric, (dataset.target,), dataset.target, own), "numbers", 0)]
    names = class_names(dataset)
    by_class = len(outputs) > 1 and dataset.target not in outputs if own else metric.grader == _SUBSTITUTES["classes"]
    if by_class:
        return [(_task(base, metric, outputs if own else names, "", own), "class columns", 0)]
    single = _task(base, metric, outputs, dataset.target, own)
    scores: list[tuple[Task, Form, int]] = [(single, "scores", code) for code in (1, 0) if len(names) == 2]
    return [*scores, (single, "labels", 0)]


def _task(base: Task, metric: Metric, columns: Sequence[str], first: str, own: bool) -> Task:
    """Return a task with numbered rows, named as in the competition, with the predicted target as its first column."""
    ordered = (first, *(name for name in columns if name != first)) if first else tuple(columns)
    types = {name: kind for name, kind in base.submission.types.items() if name in ordered} if own else {}
    direction = base.direction if own else current().get("graders", str(metric.grader)).direction
    row = next(iter(base.submission.id_columns), ROW) if own else ROW
    return Task(
        id=base.id,
        title=base.title,
        description=base.description,
        submission=Submission(id_columns=(row,), target_columns=ordered, sample=None, types=types),
        metric=metric,
        direction=direction,
    )


def _probed(draft: Scorer, dataset: Dataset) -> Scorer | None:
    """Return the scorer if the metric ranks the truth above a constant, and half the truth above its opposite."""
    rows = _probe_rows(dataset)
    frame = dataset.train.iloc[rows].reset_index(drop=True)
    if draft.form == "numbers":
        truth = frame[dataset.target].to_numpy(dtype=float)
        true, level = truth[:, None], np.median(dataset.train[dataset.target].to_numpy(dtype=float))
        constants = [np.full_like(true, level), np.full_like(true, truth.mean())]
        soft = opposite = true
    else:
        codes = {name: code for code, name in enumerate(draft.names)}
        truth = frame[dataset.target].astype(str).map(codes).to_numpy(dtype=int)
        true = np.eye(len(draft.names))[truth]
        constants = [np.tile(true.mean(axis=0), (len(true), 1))]
        soft, opposite = SOFT * true + (1 - SOFT) * (1 - true), SOFT * (1 - true) + (1 - SOFT) * true
    sign = 1.0 if draft.task.direction == "maximize" else -1.0
    perfect = draft.score(frame, truth, true)
    scores = [value for constant_row in constants if not math.isnan(value := draft.score(frame, truth, constant_row))]
    constant = max(scores, key=lambda value: sign * value, default=perfect - sign)
    if not math.isfinite(perfect) or sign * perfect <= sign * constant:
        return None
    if draft.form == "scores" and sign * draft.score(frame, truth, soft) <= sign * draft.score(frame, truth, opposite):
        return None
    return replace(draft, perfect=perfect, constant=constant)


def _probe_rows(dataset: Dataset) -> Array:
    """Return some random rows of the training table, and one of each class."""
    order = np.random.default_rng(0).permutation(len(dataset.train))[:PROBED]
    if dataset.problem == "regression":
        return np.sort(order)
    firsts = np.unique(dataset.train[dataset.target].astype(str).to_numpy(dtype=str), return_index=True)[1]
    return np.unique(np.concatenate([order, firsts]))
