"""Formats of other systems for `mleredux export`. None of these systems needs to be installed.

| modules | contents |
|---|---|
| `command` | `mleredux export` |
| `atif`, `inspect_log`, `otlp` | trajectories: ATIF, logs of Inspect, OpenTelemetry spans |
| `messages`, `training_data` | rollouts as chat messages; training data for language models |
| `results` | evaluation results: every-eval-ever, `.eval_results` |
| `croissant` | metadata of a task's public files |
"""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2
_FORMATS = {
    "atif": "atif:ATIF",
    "croissant": "croissant:CROISSANT",
    "eee": "results:EVERY_EVAL_EVER",
    "eval-results": "results:EVAL_RESULTS",
    "inspect": "inspect_log:INSPECT",
    "otlp": "otlp:OTLP",
    "preferences": "training_data:PREFERENCES",
    "sft": "training_data:SFT",
    "step-rewards": "training_data:STEP_REWARDS",
}


@hookimpl
def mleredux_register_formats() -> Iterable[Ref]:
    """Return the formats, which are imported on use."""
    return [Ref(name, f"{__name__}.{target}") for name, target in _FORMATS.items()]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `export`, which supports the formats of all plugins."""
    facts = {"title": "Export runs in the formats of other systems.", "section": "Results"}
    return [Ref("export", f"{__name__}.command:command", facts)]
