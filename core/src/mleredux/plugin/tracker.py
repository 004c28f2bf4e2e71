"""For authors of trackers, which report a run to other systems while it is executed.

A tracker implements the hook that receives each event of a run in order::

    from mleredux.plugin import hookimpl
    from mleredux.plugin.tracker import Event, Run

    @hookimpl
    def mleredux_run_event(run: Run, event: Event) -> None:
        print(run.id, event.type)
"""

from __future__ import annotations

from mleredux._core.store import Run as Run
from mleredux._core.store.states import RunState as RunState
from mleredux.models import Event as Event
