"""Imbalance: the class counts, and the value of class weights, resampling and thresholds.

Strong: the best of a panel that begins with the unchanged data, which is right for probabilities and rankings (van den
Goorbergh et al., "The harm of class imbalance corrections for risk prediction models", JAMIA 29 (2022)). Naive: doing
nothing. If nothing improves on that, the naive choice is a popular and certainly harmful one instead: class weights, or
    random undersampling.

Actions must be justified: one that does not gain significantly over a smaller intervention (none, or weights and
thresholds instead of dropped, copied or synthetic rows) keeps only `UNNEEDED` of its score. If no choice makes a
difference, as for most rankings, doing nothing gets the full score and any action none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, need_classes, refusal, remembered
from mleredux_techniques._kit.data.splits import Pool, Split, assign_folds, pool
from mleredux_techniques._kit.judging.comparison import Difference, difference
from mleredux_techniques._kit.judging.marks import Efficacy, Sheet, close, listing
from mleredux_techniques._kit.judging.plans import by_split, choosing_pool, rows_of, split_losses
from mleredux_techniques._kit.judging.reference import MODELS, Model, predict
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.judging.study import OnRows
from mleredux_techniques._kit.vocabulary.preprocessing import matrices
from mleredux_techniques.imbalance import document as forms
from mleredux_techniques.imbalance.samplers import Sampler, resample, row_weights

_NONE, _WEIGHTS = forms.NoStrategy(name="none"), forms.ClassWeight(name="class_weight")
_UNDER = forms.RandomSampler(name="RandomUnderSampler")
PANEL: tuple[forms.ImbalanceStrategy, ...] = (
    _NONE,
    _WEIGHTS,
    forms.TunedThresholdClassifierCV(name="TunedThresholdClassifierCV", scoring="f1"),
    forms.TunedThresholdClassifierCV(name="TunedThresholdClassifierCV"),
    _UNDER,
)
"""The candidates for the strong choice, simplest first. Oversampling and SMOTE act like weights, but are slower."""
ACTIONS = PANEL[1:4]
"""Candidates that keep all rows; if one may be much better, nothing shows that doing nothing is correct."""
DIFFERENT = 2.0
"""Minimum harm of class weights, in standard errors, for them to be the naive choice."""
UNNEEDED = 0.4
"""Share of its score that an unneeded action keeps."""
EQUAL = 0.05
"""Doing nothing is as good as an action on labels if, with the confidence of a difference, it loses at most this share
of the learnable range. Resampling, and any action on probabilities and rankings, must show a gain."""
INNER_FOLDS = 3
POWERS = np.linspace(0.0, 2.0, 21)
"""Probabilities are divided by the class's share of the training rows to this power: 0 means unchanged, 1 balanced."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the class counts of the training table.

    Raises:
        NotApplicable: The target is a number.
    """
    need_classes(dataset, "imbalance")
    counts = {str(name): int(count) for name, count in dataset.train[dataset.target].value_counts().items()}
    if len(counts) < 2:
        raise refusal(dataset, "imbalance", "its training table has only one class")
    ratio = max(counts.values()) / min(counts.values())
    return {"target": dataset.target, "counts": counts, "ratio": ratio, "severity": forms.severity_of(ratio)}


def mark(sheet: Sheet, document: forms.ImbalanceAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the counts."""
    counts: dict[str, int] = truth["counts"]
    named = {class_name(name): count for name, count in document.class_counts.items()}
    right = sum(close(named[name], count) for name, count in counts.items() if name in named)
    listed, score = listing(f"{name} {count:,}" for name, count in counts.items()), right / max(len(counts), len(named))
    sheet.mark("class counts", score, named, counts, listed=listed, right=right, all=len(counts))
    sheet.number("imbalance ratio", document.imbalance_ratio, truth["ratio"])
    for name, edge in (("majority", max(counts.values())), ("minority", min(counts.values()))):
        claim = class_name(getattr(document, f"{name}_class"))
        among = [name for name, count in counts.items() if count == edge]
        sheet.mark(f"{name} class", float(claim in among), claim, among, rows=edge, listed=listing(among))
    sheet.same("severity", document.severity, truth["severity"], ratio=truth["ratio"])
    sheet.same("target", document.target, truth["target"])


class Strategies(OnRows[forms.ImbalanceStrategy]):
    """Strategies for class imbalance."""

    def naive(self, instance: Instance) -> forms.ImbalanceStrategy:
        return contrast(instance)[0]

    def panel(self, instance: Instance) -> Sequence[forms.ImbalanceStrategy]:
        return PANEL

    def strong(self, instance: Instance) -> forms.ImbalanceStrategy:
        return contrast(instance)[1]

    def given(self, document: forms.ImbalanceAnalysis, instance: Instance) -> forms.ImbalanceStrategy:
        return document.strategies[0]

    def told(self, option: forms.ImbalanceStrategy, instance: Instance) -> str:
        options = ", ".join(f"{key}={value}" for key, value in option.model_dump(exclude={"name"}).items())
        return "the unchanged data" if isinstance(option, forms.NoStrategy) else f"{option.name}({options})"

    def on(self, data: Pool, option: forms.ImbalanceStrategy, instance: Instance, models: Sequence[Model]) -> Array:
        """Return the losses; thresholds affect only labels."""
        labels = scorer(data.dataset, instance.base).form == "labels"
        how = _NONE if isinstance(option, forms.TunedThresholdClassifierCV) and not labels else option
        return by_split(data, f"{models} {how!r}", lambda split: _loss(instance, data, split, how, models))

    def role(self, instance: Instance) -> str:
        often = "A common choice, but harmful here: nothing is better than unchanged data"
        return super().role(instance) if self.naive(instance) == _NONE else often

    def gap(self, instance: Instance) -> Difference:
        """Return the gain of the best of three choices over the worse of unchanged data and class weights."""
        losses = [self.losses(instance, how, "quick") for how in PANEL[:3]]
        worse = max((loss.values for loss in losses[:2]), key=lambda values: float(values.mean()))
        best = min((loss.values for loss in losses), key=lambda values: float(values.mean()))
        return difference(worse, best, losses[0].overlap)


STUDY = Strategies()


def measure(document: forms.ImbalanceAnalysis, instance: Instance) -> Efficacy:
    """Execute the first recommended strategy."""
    chosen, strong, data = document.strategies[0], STUDY.strong(instance), pool(instance.dataset)
    efficacy = STUDY.measure(document, instance)
    less = None if chosen == strong else _less(instance, data, chosen)
    if less is not None:
        text = STUDY.told(less, instance).capitalize()
        text += f": just as good on the same splits. An unnecessary action is worth {UNNEEDED} of the credit."
        score = round(UNNEEDED * (efficacy.score or 0.0), 4)
    elif efficacy.score is None and chosen == strong == _NONE and all(_less(instance, data, how) for how in ACTIONS):
        text, score = "No strategy is better than doing nothing, so doing nothing is correct.", 1.0
    else:
        return efficacy
    head, *rest = efficacy.parts
    head = replace(head, score=score, weight=1.0, explanation=f"{head.explanation.partition('Naive and')[0]}{text}")
    error = UNNEEDED * (efficacy.uncertainty or 0.0) if less else 0.0
    return replace(efficacy, score=score, training=score, uncertainty=error, parts=[head, *rest])


def _less(instance: Instance, data: Pool, chosen: forms.ImbalanceStrategy) -> forms.ImbalanceStrategy | None:
    """Return the best smaller intervention that the given strategy does not improve on; None if there is none."""
    losses, metric = STUDY.on(data, chosen, instance, MODELS), scorer(instance.dataset, instance.base)
    options = []
    for place, how in enumerate(PANEL):
        if _cost(how) < _cost(chosen):
            gain = difference(STUDY.on(data, how, instance, MODELS), losses, data.overlap)
            shown = metric.form != "labels" or _cost(how) > 0 or gain.upper <= EQUAL * metric.unit
            options += [(gain.mean, place)] if shown and not gain.significant else []
    return PANEL[min(options)[1]] if options else None


def _cost(strategy: forms.ImbalanceStrategy) -> int:
    """Return 0 for no intervention, 1 if all rows stay unchanged, and 2 if rows are dropped, copied or synthesized."""
    if isinstance(strategy, forms.NoStrategy):
        return 0
    return 1 if isinstance(strategy, forms.ClassWeight | forms.TunedThresholdClassifierCV) else 2


def contrast(instance: Instance) -> tuple[forms.ImbalanceStrategy, forms.ImbalanceStrategy]:
    """Return the naive choice (a harmful one if doing nothing is strong), and the strong choice."""

    def find() -> tuple[forms.ImbalanceStrategy, forms.ImbalanceStrategy]:
        best = STUDY.best(instance, PANEL)
        for other in (choosing_pool(instance), pool(instance.dataset)):
            best = _less(instance, other, best) or best
        if best != _NONE:
            return _NONE, best
        nothing, weights = (STUDY.losses(instance, how, "chosen") for how in (_NONE, _WEIGHTS))
        harm = difference(weights.values, nothing.values, weights.overlap).ratio
        return (_WEIGHTS if harm > DIFFERENT else _UNDER), best

    return remembered(instance.dataset, "contrast of strategies", find)


def _loss(
    instance: Instance, data: Pool, split: Split, strategy: forms.ImbalanceStrategy, models: Sequence[Model]
) -> Array:
    """Return the losses of the models; for thresholds, of values that are largest for the predicted class."""
    key, y, count = f"features {len(data.frame)} {split.seed}", data.codes[split.train], len(data.names)
    x, others = remembered(data.dataset, key, lambda: matrices(rows_of(data, split, {})))
    weights = row_weights(strategy, y, data.names) if isinstance(strategy, forms.ClassWeight) else None
    rows, codes = resample(strategy, x, y, split.seed) if isinstance(strategy, Sampler) else (x, y)
    predictions = []
    for model in models:

        def fit(x: Array, y: Array, others: Array, model: Model = model) -> Array:
            return predict(model, x, np.eye(count)[y], others, classes=True, seed=split.seed, weights=weights)

        if rows is not x or weights is not None:
            predictions.append(fit(rows, codes, others))
            continue
        shares = remembered(data.dataset, f"shares {key} {model}", partial(fit, x, y, others))
        if isinstance(strategy, forms.TunedThresholdClassifierCV):
            inner = remembered(data.dataset, f"inner {key} {model}", partial(_inner, fit, x, y, count, split.seed))
            shares = _tuned(inner, y, shares, strategy)
        predictions.append(shares)
    return split_losses(instance, data, split, predictions)


def _inner(fit: Any, x: Array, y: Array, count: int, seed: int) -> Array:
    """Return out-of-fold probabilities of the training rows, from inner folds."""
    folds = assign_folds(y, None, INNER_FOLDS, seed=seed)
    inner = np.zeros((len(y), count))
    for fold in range(INNER_FOLDS):
        rest = folds != fold
        inner[~rest] = fit(x[rest], y[rest], x[~rest])
    return inner


def _tuned(inner: Array, y: Array, shares: Array, how: forms.TunedThresholdClassifierCV) -> Array:
    """Divide probabilities by the power of the class shares that is best on inner folds."""
    rarity = np.maximum(np.bincount(y, minlength=inner.shape[1]), 1) / len(y)
    reached = [_reached(how.scoring, y, (inner / rarity**power).argmax(axis=1)) for power in POWERS]
    best = POWERS[int(np.argmax(np.round(reached, 9)))]
    return np.asarray(shares / rarity**best)


def _reached(scoring: str, truth: Array, guess: Array) -> float:
    """Return the score of predicted classes; F1 of the rarest of two classes, or else its mean over classes."""
    from sklearn import metrics

    if scoring != "f1":
        return float(getattr(metrics, f"{scoring}_score")(truth, guess))
    classes, sizes = np.unique(truth, return_counts=True)
    wanted = classes if len(classes) > 2 else classes[[sizes.argmin()]]
    return float(metrics.f1_score(truth, guess, labels=wanted, average="macro", zero_division=0.0))


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth, counts = instance.truth, instance.truth["counts"]
    strategy = STUDY.strong(instance) if instance.dataset.features else _WEIGHTS
    most, least = (find(counts, key=counts.__getitem__) for find in (max, min))
    known = {"target": truth["target"], "imbalance_ratio": truth["ratio"], "severity": truth["severity"]}
    edges = {"majority_class": most, "minority_class": least}
    return {**known, **edges, "class_counts": counts, "strategies": [strategy.model_dump()]}
