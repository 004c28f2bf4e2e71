"""Two runs side by side: how their agents and their final code differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mleredux.plugin.artifact import Run

from mleredux_view.diffs import diff_folders
from mleredux_view.visit import Shown, Visit, page

_NOT_THE_AGENT = {"id", "created_at", "data_dir", "experiment", "arm", "task"}


@page("/pairs/{first}/{second}")
def pair(visit: Visit) -> Shown:
    """Compare the first run with the second."""
    runs = [visit.source.run(visit.parts[name]) for name in ("first", "second")]
    before, after = map(_settings, runs)
    changes = [(name, before.get(name, "–"), after.get(name, "–")) for name in sorted(before.keys() | after.keys())]
    return Shown(
        "pair.html.j2",
        {
            "runs": runs,
            "settings": [change for change in changes if change[1] != change[2]],
            "files": diff_folders(_code(runs[0]), code) if (code := _code(runs[1])) else [],
        },
    )


def _settings(run: Run) -> dict[str, str]:
    """Return the agent, its version and options, and the run's settings, by name."""
    spec, use = run.spec.model_dump(mode="json", exclude=_NOT_THE_AGENT), run.use
    return dict(_flat({**spec, "use": use.model_dump(mode="json") if use else {}}))


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)


def _code(run: Run) -> Path | None:
    """Return the code of the last version of the submission that has code."""
    return next((kept.code for kept in reversed(run.submissions()) if kept.code.is_dir()), None)
