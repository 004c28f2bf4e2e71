"""A naive plan of treatments (imputations, encodings or scalers), a panel of good ones, and the recommended one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.judging.comparison import Difference
from mleredux_techniques._kit.judging.plans import Plan, choose, compare, gap
from mleredux_techniques._kit.judging.reference import MODELS, Model
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.document import Part
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing

Treatments = Mapping[str, Any]
"""Column → treatment."""


@dataclass(frozen=True)
class Panel:
    """What a recommendation is compared with.

    Attributes:
        kind: The field of a `Preprocessing`.
        title: What the naive plan does.
        naive: The naive plan of a dataset.
        plans: Good plans of a dataset, simplest first, by what they do.
        quick: The plan whose gain over the naive one makes planted data count.
        models: The models that the treatments matter to.
    """

    kind: Literal["imputation", "encoding", "scaler"]
    title: str
    naive: Callable[[Dataset], Treatments]
    plans: Callable[[Dataset], Mapping[str, Treatments]]
    quick: Callable[[Dataset], Treatments]
    models: Sequence[Model] = MODELS

    def plan(self, treatments: Treatments) -> Plan:
        """Return treatments as a plan."""
        return {name: Preprocessing(**{self.kind: how}) for name, how in treatments.items()}

    def contrast(self, instance: Instance) -> tuple[tuple[str, Plan], tuple[str, Plan]]:
        """Return the naive plan and the panel's best one, with what they do."""
        plans = {name: self.plan(how) for name, how in self.plans(instance.dataset).items()}
        best = choose(instance, plans, self.models)
        return (self.title, self.plan(self.naive(instance.dataset))), (best, plans[best])

    def measure(self, given: Treatments, instance: Instance) -> Efficacy:
        """Execute the recommended treatments."""
        before, best = self.contrast(instance)
        names = [_name(how) for how in given.values()]
        told = ", ".join(f"{name} on {names.count(name)}" for name in sorted(set(names)))
        return compare(instance, naive=before, strong=best, given=(told, self.plan(given)), models=self.models)

    def gap(self, instance: Instance) -> Difference:
        """Return what good advice gains over the naive one, quickly."""
        naive, quick = (self.plan(find(instance.dataset)) for find in (self.naive, self.quick))
        return gap(instance, naive, quick)


def _name(how: Part) -> str:
    told = how.model_dump()
    text = f"{told['name']}({told['strategy']})" if "strategy" in told else str(told["name"])
    return f"{text} with indicator" if told.get("add_indicator") else text
