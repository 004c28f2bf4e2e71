"""For authors of formats, in which `mleredux export` writes runs for other systems.

A format writes one file of one run, or of all runs together; it gets documents from which secrets are removed::

    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mleredux.plugin.export import ExportedRun, Format

    def lines(runs: Sequence[ExportedRun], options: Mapping[str, Any]) -> Iterable[bytes]:
        for one in runs:
            yield f"{one.run.id}{options['separator']}{one.score}\\n".encode()

    FORMAT = Format(
        id="scores", title="One line a run", suffix=".txt", write=lines, together=True, options={"separator": " "}
    )
"""

from __future__ import annotations

from mleredux._core.export_format import Format
from mleredux._core.exports import ExportedRun, Filters, export

__all__ = ["ExportedRun", "Filters", "Format", "export"]
