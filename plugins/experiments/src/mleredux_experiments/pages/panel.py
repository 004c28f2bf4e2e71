"""The panel of runs; by itself, so that pages of other runs do not wait for what analyses import."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.artifact import Run
from mleredux.plugin.page import Visit


def panel(visit: Visit, run: Run) -> dict[str, Any] | None:
    """The experiment that a run belongs to, if its record is here."""
    if not (name := run.spec.experiment):
        return None
    from mleredux_experiments.pages.compare import record_of

    return {"experiment": name, "arm": run.spec.arm} if record_of(visit, name) else None
