"""Check agents' actions for rule violations: evidence, not verdicts.

| modules | contents |
|---|---|
| `command`, `check` | `mleredux runs conduct`; all checks of one run, as `conduct.json` and `conduct.md` |
| `code` | syntax trees of Python code, with resolved names and folded constants |
| `rules` | patterns of violations in code and logs |
| `predictions`, `similarity` | hand-written predictions; similarity to reference code and other runs |
| `judge` | a language model that checks the same rules |
| `signals` | evidence for the verdict on a graded result |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mleredux.plugin.artifact import Artifact, Evidence, Report, Run
    from mleredux.plugin.task import Task

mleredux_contract = 2


@hookimpl(trylast=True)
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Check the run last, because the check reads the rollout."""
    from mleredux_audit_conduct.check import produce_conduct

    return produce_conduct(run)


@hookimpl
def mleredux_find_evidence(run: Run, task: Task, report: Report, private: Path) -> Iterable[Evidence]:
    """Return signals against a result that was just graded."""
    from mleredux_audit_conduct.signals import find_evidence, perfect

    return [*find_evidence(run, task, report), *perfect(run.path / report.submission_path, task, private)]


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the command `mleredux runs conduct`."""
    return [Ref("runs conduct", "mleredux_audit_conduct.command:command")]
