"""The ledger of signals: what an agent could know besides the data, and so what its result is worth."""

from __future__ import annotations

from pathlib import Path

from mleredux._core.models import Ledger
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.exposure import exposures


def make_ledger(context: StageContext, private: Path) -> Ledger:
    """The ledger of a run whose agent is gone.

    Args:
        private: The task's private folder.
    """
    run, isolated = context.run, context.sandbox.capabilities.isolated
    told = run.log.state
    exposed = exposures(run, private)
    notes = [] if isolated else [f"Sandbox {context.sandbox.id} does not keep the answers on this machine from agents."]
    llm = told.llm
    return Ledger(
        validations=told.validations,
        network=run.spec.network if isolated else "open",
        hosts=llm.hosts if llm else (),
        llm_calls=llm.calls if llm else None,
        llm=llm,
        isolated=isolated,
        answers_exposed=bool(exposed) or not isolated,
        notes=(*notes, *told.data_notes, *exposed),
    )
