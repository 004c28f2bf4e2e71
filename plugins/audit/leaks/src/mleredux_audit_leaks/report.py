"""The report of an audit."""

from __future__ import annotations

from typing import Literal

from mleredux.models.formats import plain
from mleredux.plugin.task import Model

Severity = Literal["low", "medium", "high"]
Kind = Literal["answers", "column", "order", "id", "file", "duplicates", "groups", "sample"]
_RANK: dict[str, int] = {"high": 0, "medium": 1, "low": 2}


class Statistic(Model):
    """The statistic of a finding."""

    name: str
    value: float
    baseline: float | None = None
    """The same statistic without a leak: the mean over random permutations, or the value expected by chance."""
    threshold: float
    """The minimum value at which it is reported."""
    z: float | None = None
    """Distance from the baseline in standard deviations of the permutations."""


class AuditFinding(Model):
    """One leak."""

    kind: Kind
    severity: Severity
    message: str
    """A one-sentence description."""
    statistic: Statistic
    figures: dict[str, float | int | str] = {}
    """Additional evidence."""
    examples: tuple[str, ...] = ()
    """Locations: files, columns or ids; never answers."""


class AuditReport(Model):
    """The scope and findings of an audit."""

    task: str
    task_version: str
    answers: int
    """Number of checked rows of the answers."""
    files: int
    """Number of public files, including members of archives."""
    tables: int
    findings: tuple[AuditFinding, ...] = ()
    """Findings, the most severe first."""
    notes: tuple[str, ...] = ()
    """Notes on what was sampled or could not be checked."""
    seed: int = 0

    @property
    def clean(self) -> bool:
        """Return whether no finding has high severity."""
        return all(finding.severity != "high" for finding in self.findings)

    def text(self) -> str:
        """Render the report as text."""
        lines = [f"{self.task} (version {self.task_version}): {self.answers} answers, {self.files} public files, ", ""]
        lines[0] += f"{self.tables} tables checked."
        for finding in self.findings:
            figure = finding.statistic
            compared = f"{figure.name} {plain(figure.value, 4)}, reported at {plain(figure.threshold, 4)} or more"
            if figure.baseline is not None:
                compared += f"; without a leak {plain(figure.baseline, 4)}"
            if figure.z is not None:
                compared += f" ({figure.z:.1f} standard deviations away)"
            lines += [f"{finding.severity.upper():7} {finding.kind}: {finding.message}", f"        {compared}"]
            lines += [f"        {name}: {value}" for name, value in finding.figures.items()]
            lines += [f"        see {example}" for example in finding.examples]
        if not self.findings:
            lines.append("Nothing found.")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


def by_severity(findings: list[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Return the findings without duplicates, the most severe first."""
    unique = {finding.message: finding for finding in findings}.values()
    return tuple(sorted(unique, key=lambda finding: (_RANK[finding.severity], finding.kind, finding.message)))
