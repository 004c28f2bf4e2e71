"""The gateway's files in a run's manifest."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin.artifact import Artifact, Run

from mleredux_gateway.record import CALLS, FOLDER
from mleredux_gateway.trajectory import TRAJECTORY


def artifacts_of(run: Run) -> Iterable[Artifact]:
    """Return the existing files."""
    titles = {
        CALLS: ("application/jsonl", "Calls to language models"),
        TRAJECTORY: ("application/json", "Rollout created from the calls (ATIF)"),
    }
    for name, (kind, title) in titles.items():
        if (run.path / FOLDER / name).is_file():
            yield Artifact(path=f"{FOLDER}/{name}", media_type=kind, producer="gateway", title=title)
