"""Technique tasks: small diagnostic questions on the data of any competition with a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Artifact, Run

mleredux_contract = 2


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """Register one technique per folder with a `technique.py`, imported when used."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/technique.py"))
    return [Ref(name, f"{__name__}.{name}.technique:technique") for name in folders]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The command `curriculum`."""
    title = "Collect the findings of technique runs on a task, for `mleredux run --context`."
    return [Ref("curriculum", f"{__name__}.command:command", {"title": title})]


@hookimpl
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Write feedback on technique runs."""
    from mleredux_techniques.feedback import produce

    return produce(run)
