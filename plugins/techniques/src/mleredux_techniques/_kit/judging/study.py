"""The value of a technique's choices: the naive one, the best of a panel, and the recommended one.

A technique declares its choices, and how to measure the losses of a choice on some rows. The strong choice is the best
of the panel on splits other than those used for scoring. Planted data is redrawn until the best of a few choices gains
enough over the naive one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, remembered
from mleredux_techniques._kit.data.splits import Pool, pool, sampled
from mleredux_techniques._kit.judging import predictions
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge, undecided
from mleredux_techniques._kit.judging.marks import Efficacy
from mleredux_techniques._kit.judging.plans import QUICK, QUICK_ROWS, best_of, choosing_pool, losses
from mleredux_techniques._kit.judging.postprocessing import Known
from mleredux_techniques._kit.judging.predictions import FILE, KEY, OVERLAP, REPEATS, known_of, table
from mleredux_techniques._kit.judging.reference import MODELS, NAMES, Model
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.vocabulary.document import Part
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing
from mleredux_techniques._kit.vocabulary.recommendation import by_choice

Option = TypeVar("Option")
Stage = Literal["scored", "chosen", "quick"]
"""The purpose of measuring losses: the score, the selection of the strong option, or the gap of planted data."""


@dataclass(frozen=True)
class Losses:
    """The losses of a choice, one per split.

    Attributes:
        overlap: Ratio of held-out rows to training rows of a split; 0 if splits share no rows.
        sample: A sentence about the rows, if they are a sample.
    """

    values: Array
    overlap: float
    sample: str = ""


class Study(ABC, Generic[Option]):
    """The choices of a technique and their losses."""

    text = f"{{metric}} of the best of {NAMES} on held-out training rows"
    """A description of the losses, for the report."""
    private = False
    """Whether losses are measured on private test rows, so that their score is not passed on."""

    @abstractmethod
    def naive(self, instance: Instance) -> Option:
        """Return the choice made without any analysis."""

    @abstractmethod
    def panel(self, instance: Instance) -> Sequence[Option]:
        """Return the candidates for the strong choice, simplest first."""

    @abstractmethod
    def given(self, document: Any, instance: Instance) -> Option:
        """Return the choice that a document recommends."""

    @abstractmethod
    def losses(self, instance: Instance, option: Option, stage: Stage) -> Losses:
        """Return the losses of a choice."""

    @abstractmethod
    def told(self, option: Option, instance: Instance) -> str:
        """Describe a choice in words."""

    def quick(self, instance: Instance) -> Sequence[Option]:
        """Return the choices that are compared with the naive one, to decide whether planted data is usable."""
        return self.panel(instance)

    def role(self, instance: Instance) -> str:
        """Return the role of the naive choice, for the report."""
        return Choice.role

    def best(self, instance: Instance, panel: Sequence[Option]) -> Option:
        """Return the best choice on splits not used for scoring; the first among equally good ones."""
        if len(panel) == 1:
            return panel[0]
        losses = {str(place): self.losses(instance, option, "chosen") for place, option in enumerate(panel)}
        return panel[int(best_of(losses, lambda place: losses[place].values, losses["0"].overlap))]

    def strong(self, instance: Instance) -> Option:
        """Return the strong choice: that of the truth, if it was found when the task was prepared."""
        known: Option | None = instance.truth.get("strong")
        return self.best(instance, self.panel(instance)) if known is None else known

    def measure(self, document: Any, instance: Instance) -> Efficacy:
        """Execute the recommended, the naive and the strong choice, and score the first between the others."""
        options = self.naive(instance), self.strong(instance), self.given(document, instance)
        if options[0] == options[1] == options[2]:
            return undecided("The recommended, the naive and the strong choice are the same.")
        losses = [self.losses(instance, option, "scored") for option in options]
        pairs, role = zip(options, losses, strict=True), self.role(instance)
        choices = [Choice(loss.values, self.told(option, instance), role) for option, loss in pairs]
        metric, (first, *_) = scorer(instance.dataset, instance.base), losses
        efficacy = judge(*choices, overlap=first.overlap, scorer=metric, measure=self.text, sample=first.sample)
        return replace(efficacy, training=None) if self.private else efficacy

    def gap(self, instance: Instance) -> Difference:
        """Return the gain of the best of a few choices over the naive one."""
        naive = self.losses(instance, self.naive(instance), "quick")
        losses = [self.losses(instance, option, "quick").values for option in self.quick(instance)]
        return difference(naive.values, min(losses, key=lambda values: float(values.mean())), naive.overlap)


class OnRows(Study[Option]):
    """Choices that are evaluated by training the reference models on splits of the training rows."""

    models: Sequence[Model] = MODELS
    """The reference models that are trained."""

    @abstractmethod
    def on(self, data: Pool, option: Option, instance: Instance, models: Sequence[Model]) -> Array:
        """Return the loss of the best model for each split of a pool."""

    def losses(self, instance: Instance, option: Option, stage: Stage) -> Losses:
        """Return the losses on the stage's pool; for the quick stage, on few splits with two of the models."""
        if stage == "quick":
            data = pool(instance.dataset, max_rows=QUICK_ROWS, repeats=1)
        else:
            data = pool(instance.dataset) if stage == "scored" else choosing_pool(instance)
        values = self.on(data, option, instance, QUICK if stage == "quick" else self.models)
        return Losses(values, data.overlap, data.sample)


Treatments = Mapping[str, Any]
"""Column → treatment."""
LARGE = 4_000
"""For more training rows, the strong choice is selected during preparation."""


class OfColumns(OnRows[Treatments]):
    """Treatments of columns: imputations, encodings or scalers."""

    kind: Literal["imputation", "encoding", "scaler"]
    """The field of `Preprocessing` that the choices set, including that of the columns in documents."""
    columns = "features"
    """The field of documents that lists columns."""

    def unlisted(self, instance: Instance) -> Treatments:
        """Return the treatments of columns that are not listed in a document; others can't be treated."""
        return self.naive(instance)

    def listed(self, document: Any) -> Treatments:
        """Return the treatments in a document."""
        return {entry.column: getattr(entry, self.kind) for entry in getattr(document, self.columns)}

    def given(self, document: Any, instance: Instance) -> Treatments:
        """Return the treatments of all columns that can be treated."""
        unlisted = self.unlisted(instance)
        return {**unlisted, **{name: how for name, how in self.listed(document).items() if name in unlisted}}

    def recommend(self, document: Any, dataset: Dataset) -> list[str]:
        """Return the recommendation, one line per treatment."""
        return by_choice(self.listed(document).items(), dataset)

    def reference(self, instance: Instance) -> dict[str, Any]:
        """Return the index of the strong choice in the panel, for tables so large that grading would take long."""
        if len(instance.dataset.train) <= LARGE:
            return {}
        at = Instance(sampled(instance.dataset), instance.truth, instance.base)
        return {"strong": self.panel(at).index(self.strong(at))}

    def strong(self, instance: Instance) -> Treatments:
        """Return the strong choice; for large tables, the one stored in the truth."""
        panel, known = self.panel(instance), instance.truth.get("strong")
        return self.best(instance, panel) if known is None else panel[known]

    def recommended(self, instance: Instance) -> dict[str, Any]:
        """Return the strong choice as JSON values."""
        return {name: how.model_dump() for name, how in self.strong(instance).items()}

    def on(self, data: Pool, option: Treatments, instance: Instance, models: Sequence[Model]) -> Array:
        """Return the losses of a plan."""
        plan = {name: Preprocessing(**{self.kind: how}) for name, how in option.items()}
        return losses(instance, data, plan, models)

    def told(self, option: Treatments, instance: Instance) -> str:
        """Describe how many columns get each treatment."""
        names = Counter(_name(how) for how in option.values())
        return ", ".join(f"{name} on {count}" for name, count in sorted(names.items())) or "no treatment"


def _name(how: Part) -> str:
    fields = how.model_dump()
    text = f"{fields['name']}({fields['strategy']})" if "strategy" in fields else str(fields["name"])
    return f"{text} with indicator" if fields.get("add_indicator") else text


class OnPredictions(Study[Option]):
    """Choices that change given predictions (`KEY` in the truth), fitted and scored on different rows."""

    def predictions(self, dataset: Dataset) -> dict[str, Any]:
        """Return the given predictions, to be stored in the truth: those of each model."""
        return predictions.each_model(predictions.out_of_fold(dataset), dataset)

    @abstractmethod
    def carry(self, option: Option, fit: list[Known], held: list[Array], instance: Instance, split: str) -> Array:
        """Return the predictions for held-out rows after applying a choice.

        Args:
            fit: The predictions of each model for the rows to fit on.
            held: The predictions of each model for the held-out rows.
            split: The split's name.
        """

    def files(self, dataset: Dataset) -> dict[str, str]:
        """Return the public file."""
        return {FILE: table(dataset, self.predictions(dataset))}

    def known(self, instance: Instance) -> dict[str, Known]:
        """Return the predictions by model."""

        def find() -> dict[str, Known]:
            held = instance.truth.get(KEY) or self.predictions(instance.dataset)
            at = Instance(instance.dataset, {KEY: held}, instance.base)
            return {name: known_of(at, name) for name in held["values"]}

        return remembered(instance.dataset, f"known by {type(self).__name__}", find)

    def losses(self, instance: Instance, option: Option, stage: Stage) -> Losses:
        """Return the losses, one per split; the strong choice is selected on other splits."""
        seed, repeats = (7, 1) if stage == "chosen" else (0, REPEATS)
        models, metric = [*self.known(instance).values()], scorer(instance.dataset, instance.base)

        def find() -> Array:
            carry = partial(self.carry, option, instance=instance)
            return predictions.losses(metric, models, carry, seed, repeats)

        values = remembered(instance.dataset, f"{type(self).__name__} {option} {seed}", find)
        return Losses(values, OVERLAP, instance.dataset.sample)
