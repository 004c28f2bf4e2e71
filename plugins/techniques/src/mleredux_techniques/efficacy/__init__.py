"""What a recommendation does: an answer is carried out on the task's data, beside a naive and a strong choice.

One module a technique, each with `measure(document, dataset)`; what they share is `comparison` (losses → score and
uncertainty), `reference` (the two models), `recipe` (a table → a matrix, as the columns' recipes say) and `splits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mleredux_techniques.dataset import Dataset
    from mleredux_techniques.results import Efficacy
    from mleredux_techniques.schemas import Document


def measure(technique: str, document: Document, dataset: Dataset) -> Efficacy:
    """Carry a document's recommendation out. Equal documents and data give equal results.

    Args:
        technique: Its id.
        document: The technique's document.
        dataset: The task's data, private test rows with their targets included.
    """
    from importlib import import_module

    from threadpoolctl import threadpool_limits

    module = import_module(f"{__name__}.{technique}")
    with threadpool_limits(1):  # sums in another order are other sums
        found: Efficacy = module.measure(document, dataset)
    return found
