"""What an audit gives."""

from __future__ import annotations

from typing import Literal

from mleredux.plugin.task import Model

Severity = Literal["low", "medium", "high"]
Kind = Literal["answers", "column", "order", "id", "file", "duplicates", "groups", "sample"]
_RANK: dict[str, int] = {"high": 0, "medium": 1, "low": 2}


class Statistic(Model):
    """The figure a finding rests on."""

    name: str
    value: float
    baseline: float | None = None
    """The same figure where there is no leak: the mean over random permutations, or what chance gives."""
    threshold: float
    """The value from which it is reported."""
    z: float | None = None
    """Distance from the baseline in standard deviations of the permutations."""


class AuditFinding(Model):
    """One thing that lets an agent score without learning."""

    kind: Kind
    severity: Severity
    message: str
    """One sentence."""
    statistic: Statistic
    figures: dict[str, float | int | str] = {}
    """Further evidence."""
    examples: tuple[str, ...] = ()
    """Where to look: files, columns, ids; never answers."""


class AuditReport(Model):
    """What was looked at, and what was found."""

    task: str
    task_version: str
    answers: int
    """Rows of answers looked at."""
    files: int
    """Public files, members of archives included."""
    tables: int
    findings: tuple[AuditFinding, ...] = ()
    """The most severe first."""
    notes: tuple[str, ...] = ()
    """What was sampled or could not be looked at."""
    seed: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing of high severity was found."""
        return all(finding.severity != "high" for finding in self.findings)

    def text(self) -> str:
        """The report for people."""
        lines = [f"{self.task} (version {self.task_version}): {self.answers} answers, {self.files} public files, ", ""]
        lines[0] += f"{self.tables} tables looked at."
        for finding in self.findings:
            figure = finding.statistic
            compared = f"{figure.name} {figure.value:.4g}, reported from {figure.threshold:.4g}"
            if figure.baseline is not None:
                compared += f"; without a leak {figure.baseline:.4g}"
            if figure.z is not None:
                compared += f" ({figure.z:.1f} standard deviations off)"
            lines += [f"{finding.severity.upper():7} {finding.kind}: {finding.message}", f"        {compared}"]
            lines += [f"        {name}: {value}" for name, value in finding.figures.items()]
            lines += [f"        see {example}" for example in finding.examples]
        if not self.findings:
            lines.append("Nothing found.")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


def by_severity(findings: list[AuditFinding]) -> tuple[AuditFinding, ...]:
    """The most severe first, without repetitions."""
    unique = {finding.message: finding for finding in findings}.values()
    return tuple(sorted(unique, key=lambda finding: (_RANK[finding.severity], finding.kind, finding.message)))
