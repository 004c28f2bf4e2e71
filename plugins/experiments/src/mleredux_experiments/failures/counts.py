"""Findings of runs, and how often each category is the primary one, by arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mleredux.plugin.artifact import Run

from mleredux_experiments.failures.categories import CATEGORIES, Finding
from mleredux_experiments.failures.evidence import Evidence, evidence_of
from mleredux_experiments.failures.rules import RULES
from mleredux_experiments.sources import read_run


def find(run: Run, leaks: tuple[str, ...] = ()) -> list[Finding]:
    """The findings of a run, the primary one first; none where nothing went wrong, or it was cancelled.

    Args:
        leaks: Columns that the task declares as leaks.
    """
    return findings_in(evidence_of(run, read_run(run.path, rollouts=True), leaks))


def findings_in(evidence: Evidence) -> list[Finding]:
    """As `find`, from what was read of a run."""
    if evidence.row.status not in ("done", "failed", "timed_out"):
        return []
    order = list(CATEGORIES)
    found = [finding for rule in RULES for finding in rule(evidence)]
    if any(not CATEGORIES[finding.category].of_agent for finding in found):
        return [finding for finding in found if not CATEGORIES[finding.category].of_agent]
    return sorted(found, key=lambda finding: order.index(finding.category))


def counts_by_arm(findings: Iterable[tuple[str, list[Finding]]]) -> dict[str, Counter[str]]:
    """For each arm, how many of its runs have each category as their primary one; `none` counts those without.

    Args:
        findings: The arm of each run, and its findings.
    """
    counts: dict[str, Counter[str]] = {}
    for arm, found in findings:
        counts.setdefault(arm, Counter())[found[0].category if found else "none"] += 1
    return counts
