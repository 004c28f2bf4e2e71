"""ATIF, Harbor's trajectory format: the unchanged rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mleredux_rollout import ExportedRun, Format, dump_rollout


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    for exported in runs:
        rollout = exported.rollout
        assert rollout is not None
        yield dump_rollout(rollout)


ATIF = Format(id="atif", title="Harbor trajectories (ATIF 1.8)", suffix=".json", write=_write, needs=("rollout",))
