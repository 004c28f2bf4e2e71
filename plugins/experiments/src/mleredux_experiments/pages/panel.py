"""The panel of runs; a separate module, so that pages of runs without an experiment do not import the analysis."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.artifact import Run
from mleredux.plugin.page import Visit


def panel(visit: Visit, run: Run) -> dict[str, Any] | None:
    """Return the experiment that a run belongs to, if its record is available."""
    if not (name := run.spec.experiment):
        return None
    from mleredux_experiments.pages.compare import record_of

    return {"experiment": name, "arm": run.spec.arm} if record_of(visit, name) else None
