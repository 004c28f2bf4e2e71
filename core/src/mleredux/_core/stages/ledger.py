"""The ledger of signals: what an agent could know besides the data, and so what its result is worth."""

from __future__ import annotations

from collections.abc import Sequence

from mleredux._core.sandboxes.volume import UNLIMITED
from mleredux._core.stages.context import StageContext
from mleredux.models import DiskLimit, Evidence, Ledger


def make_ledger(context: StageContext, exposed: Sequence[Evidence]) -> Ledger:
    """The ledger of a run whose agent is gone.

    Args:
        exposed: The result of `exposures`.
    """
    run, isolated = context.run, context.sandbox.capabilities.isolated
    told = run.log.state
    notes = [] if isolated else [within_reach(context).why]
    llm, disk = told.llm, told.disk
    if disk is not None and disk.named:
        notes.append("The path of the data, which the agent could see, names the task.")
    if (run.path / ".control" / UNLIMITED).exists():
        notes.append("The disk limit does not hold what the agent wrote to the files of its image.")
    reached = [use.host for use in told.egress if use.phase == "run" and use.allowed]
    return Ledger(
        validations=told.validations,
        validation_seconds=round(told.validation_seconds, 3),
        network=run.spec.network if isolated else "open",
        hosts=tuple(dict.fromkeys((*(llm.hosts if llm else ()), *reached))),
        egress=told.egress,
        llm_calls=llm.calls if llm else None,
        llm=llm,
        disk=DiskLimit(limit_mb=disk.limit_mb, enforced_by=disk.enforced_by) if disk else None,
        isolated=isolated,
        answers_exposed=bool(exposed) or not isolated,
        answers_seen=any(item.level == "seen" for item in exposed),
        notes=(*notes, *told.data_notes, *(item.why for item in exposed)),
    )


def within_reach(context: StageContext) -> Evidence:
    """The evidence against every result of a sandbox that is no security boundary."""
    why = f"Sandbox {context.sandbox.id} does not keep the answers on this machine from agents."
    return Evidence(kind="sandbox", level="within reach", why=why)
