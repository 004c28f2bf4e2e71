"""Artifacts of a run: the standard rollout (`rollout.json`), an HTML report (`report.html`), and the score over time.

| modules | contents |
|---|---|
| `rollouts` | `rollout.json`, with tokens and cost as measured by the gateway |
| `reconstruct` | the outcome of a run; a rollout reconstructed from events, code and logs |
| `steps`, `documents`, `files` | parts of the page: rollout, texts of plugins, logs and artifacts; safe reading |
| `charts`, `timeline`, `view`, `page` | charts; the content of the page; `report.html` |
| `shared` | functions for other pages about runs |
| `curve_command`, `curves` | `mleredux runs plot`; scores over time as text, image or JSON |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mleredux.plugin.artifact import Artifact, Run

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the command `mleredux runs plot`."""
    return [Ref("runs plot", f"{__name__}.curve_command:command", {"formerly": ("runs curve",)})]


@hookimpl(tryfirst=True)
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Write the rollout first, because other plugins read it."""
    from mleredux_artifact_reports.rollouts import produce_rollout

    return [produce_rollout(run)]


@hookimpl(specname="mleredux_produce_artifacts")
def produce_page(run: Run, artifacts: tuple[Artifact, ...]) -> Iterable[Artifact]:
    """Write the page, which shows the artifacts of other plugins."""
    from mleredux_artifact_reports.page import produce_report

    return [produce_report(run, artifacts)]
