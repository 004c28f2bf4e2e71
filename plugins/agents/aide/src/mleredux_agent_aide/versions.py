"""Match versions of a run's submission to nodes, by content because the run may miss a version."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from mleredux_rollout import InvalidRollout, as_count, as_dict, read_below

MAX_BYTES = 50_000_000
_MAX_VERSIONS = 1000


def versions_of_nodes(facts: dict[str, Any], logs: Path, submissions: Path) -> dict[str, int]:
    """Return the number of the stored version for each submitted node, by node id.

    Args:
        facts: The driver's notes: `nodes` holds, by id, `submission` (a file in `logs`) and, if it was submitted,
        `version` (the driver's own count).
        logs: AIDE's logs.
        submissions: The run's stored versions, `0001.csv` and so on.
    """
    nodes = as_dict(facts.get("nodes"))
    counted = [(as_count(as_dict(fact).get("version")), name) for name, fact in nodes.items()]
    handed_in = sorted((count, name) for count, name in counted if count is not None)[:_MAX_VERSIONS]
    digests = {name: _digest(logs, as_dict(nodes[name]).get("submission")) for _, name in handed_in}
    waiting = [name for _, name in handed_in if digests[name]]
    versions: dict[str, int] = {}
    for path in sorted(submissions.glob("[0-9]*"))[:_MAX_VERSIONS] if waiting else ():
        number = int(path.stem) if path.stem.isdecimal() else 0
        digest = _digest(submissions, path.name)
        match = next((index for index, name in enumerate(waiting) if digests[name] == digest), None)
        if number and match is not None:
            versions[waiting[match]] = number
            del waiting[: match + 1]  # versions are in the order in which they were submitted
    return versions


def _digest(folder: Path, name: Any) -> str | None:
    """Return the SHA-256 of a file that is not too large; links are not followed."""
    with suppress(InvalidRollout, ValueError, TypeError):
        return hashlib.sha256(read_below(folder, name, max_bytes=MAX_BYTES)).hexdigest()
    return None
