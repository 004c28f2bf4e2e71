"""Technique tasks: small diagnostic questions on the data of any competition with a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Artifact, Run

mleredux_contract = 2

TECHNIQUES = ("imbalance", "missing", "encoding", "cv", "scaling", "leakage")


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """The six techniques, imported when they are used."""
    return [Ref(name, f"{__name__}.techniques:{name}") for name in TECHNIQUES]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The command `curriculum`."""
    title = "Collect what technique runs established about a task, for `mleredux run --context`."
    return [Ref("curriculum", f"{__name__}.command:command", {"title": title})]


@hookimpl
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Feedback on technique runs."""
    from mleredux_techniques.feedback import produce

    return produce(run)
